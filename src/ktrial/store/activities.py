"""Who runs which study now. Told for those who look on: nothing rests on it, and it may be lost."""

from datetime import UTC

from sqlalchemy import Connection, delete, insert, select

from ktrial.model.activity import Activity
from ktrial.store import row_conversion
from ktrial.store.existing_tables import has
from ktrial.store.schema import activities


def tell(connection: Connection, study_id: int, activity: Activity) -> None:
    """In place of what the same run told before."""
    forget(connection, activity.key)
    row = {
        "study_id": study_id,
        "key": activity.key,
        "heard": row_conversion.to_utc(activity.heard.astimezone(UTC)),
        "content": activity.model_dump(mode="json"),
    }
    connection.execute(insert(activities).values(**row))


def forget(connection: Connection, *keys: str) -> None:
    """Of runs that have ended."""
    connection.execute(delete(activities).where(activities.c.key.in_(keys)))


def every(connection: Connection) -> tuple[tuple[int, Activity], ...]:
    """Each with its study's number, in the order of telling. Raises pydantic.ValidationError."""
    if not has(connection, activities):
        return ()
    rows = connection.execute(select(activities).order_by(activities.c.study_id, activities.c.key))
    return tuple((row.study_id, Activity.model_validate(row.content)) for row in rows)
