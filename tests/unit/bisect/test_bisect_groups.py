"""Which options go together, from what Kconfig says of them."""

from hypothesis import given
from hypothesis import strategies as st

from ktrial.bisect.builds import Grouped, differing, grouped, without_unloaded
from ktrial.model.kernel import MenuOption, Menus


def _option(depends: str = "", selected_by: tuple[str, ...] = (), choice: tuple[str, ...] = ()) -> MenuOption:
    return MenuOption(kind="bool", prompt="?", depends=depends, selected_by=selected_by, choice=choice)


def _menus(**options: MenuOption) -> Menus:
    return Menus(options={f"CONFIG_{name}": option for name, option in options.items()})


def _on(*names: str) -> dict[str, str]:
    return {f"CONFIG_{name}": "y" for name in names}


def _names(groups: Grouped) -> list[set[str]]:
    return [{name.removeprefix("CONFIG_") for name in group} for group in groups.groups]


def _required(groups: Grouped, name: str) -> set[str]:
    """What is set with an option, itself left out."""
    (item,) = [at for at, group in enumerate(_names(groups)) if name in group]
    names = [name for at in groups.items.closed({item}) for name in _names(groups)[at]]
    return set(names) - {name}


def test_what_differs_is_what_has_another_value() -> None:
    before = {"CONFIG_A": "y", "CONFIG_HZ": "250", "CONFIG_SAME": "y"}
    after = {"CONFIG_HZ": "1000", "CONFIG_B": "m", "CONFIG_SAME": "y"}
    assert differing(before, after) == ("CONFIG_A", "CONFIG_B", "CONFIG_HZ")


def test_options_that_have_nothing_to_do_with_each_other_are_groups() -> None:
    groups = grouped({}, _on("A", "B"), _menus(A=_option(), B=_option()))
    assert _names(groups) == [{"A"}, {"B"}]
    assert not _required(groups, "A")


def test_an_option_requires_what_it_depends_on() -> None:
    menus = _menus(NET=_option(), XFRM=_option("NET && EXPERT"), AAA=_option("XFRM"))
    groups = grouped({}, _on("NET", "XFRM", "AAA"), menus)
    assert _names(groups) == [{"NET"}, {"XFRM"}, {"AAA"}]
    assert _required(groups, "AAA") == {"NET", "XFRM"}
    assert _required(groups, "NET") == set()


def test_what_goes_away_takes_with_it_what_depends_on_it() -> None:
    groups = grouped(_on("NET", "XFRM"), {}, _menus(NET=_option(), XFRM=_option("NET")))
    assert _required(groups, "NET") == {"XFRM"}
    assert _required(groups, "XFRM") == set()


def test_who_selects_an_option_brings_it() -> None:
    menus = _menus(CRC=_option(selected_by=("XFS if BLOCK",)), XFS=_option())
    assert _required(grouped({}, _on("CRC", "XFS"), menus), "XFS") == {"CRC"}
    assert _required(grouped(_on("CRC", "XFS"), {}, menus), "CRC") == {"XFS"}


def test_a_choice_is_one_group() -> None:
    both = ("CONFIG_SLAB", "CONFIG_SLUB")
    menus = _menus(SLAB=_option(choice=both), SLUB=_option(choice=both), SLUB_STATS=_option("SLUB"))
    groups = grouped(_on("SLUB", "SLUB_STATS"), _on("SLAB"), menus)
    assert {"SLAB", "SLUB"} in _names(groups)
    assert _required(groups, "SLAB") == {"SLUB", "SLUB_STATS"}


def test_a_choice_that_appears_goes_with_what_makes_it_appear() -> None:
    """ROMFS_FS brings a choice of which one option is on, whether it is set or not."""
    both = ("CONFIG_ROMFS_BLOCK", "CONFIG_ROMFS_MTD")
    menus = _menus(ROMFS=_option(), ROMFS_BLOCK=_option("ROMFS", choice=both))
    assert _names(grouped({}, _on("ROMFS", "ROMFS_BLOCK"), menus)) == [{"ROMFS", "ROMFS_BLOCK"}]
    assert _names(grouped(_on("ROMFS", "ROMFS_BLOCK"), {}, menus)) == [{"ROMFS", "ROMFS_BLOCK"}]


def test_options_that_require_each_other_are_one_group() -> None:
    menus = _menus(A=_option("!B"), B=_option("!A"))
    groups = grouped(_on("A"), _on("B"), menus)
    assert _names(groups) in ([{"A"}, {"B"}], [{"B"}, {"A"}], [{"A", "B"}])
    menus = _menus(A=_option("B"), B=_option(selected_by=("A",), depends="A"))
    assert _names(grouped({}, _on("A", "B"), menus)) == [{"A", "B"}]


def test_what_nobody_is_asked_for_follows() -> None:
    menus = Menus(options={"CONFIG_A": _option(), "CONFIG_HAVE_A": MenuOption(kind="bool")})
    groups = grouped({}, _on("A", "HAVE_A"), menus)
    assert _names(groups) == [{"A"}]
    assert groups.followers == ("CONFIG_HAVE_A",)


def test_without_menus_every_option_stands_for_itself() -> None:
    groups = grouped({}, _on("A", "B"), Menus(problem="no"))
    assert _names(groups) == [{"A"}, {"B"}]


@given(st.data())
def test_every_prefix_holds_what_its_options_depend_on(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 30))
    names = [f"O{at}" for at in range(count)]
    options = {}
    for at, name in enumerate(names):
        on = data.draw(st.lists(st.sampled_from(names[:at]), max_size=3)) if at else []
        options[name] = _option(" && ".join(on))
    groups = grouped({}, _on(*names), _menus(**options))
    seen: set[str] = set()
    for group in _names(groups):
        seen |= group
        for name in group:
            assert set(options[name].depends.split(" && ")) - {""} <= seen
    assert seen == set(names)


def _of_modules(**depends: str) -> Menus:
    return Menus(
        options={
            f"CONFIG_{name}": MenuOption(kind="tristate", prompt="?", depends=text)
            for name, text in depends.items()
        }
    )


def test_modules_that_nothing_loads_are_one_group_the_last_with_what_depends_on_them() -> None:
    modules = _of_modules(NET="", E1000="NET", R8169="NET", XFS="", NFS="NET", VIRTIO_BLK="")
    menus = Menus(options={**modules.options, **_menus(NFS_V4=_option("NFS"), HZ=_option()).options})
    after = {**_on("NET", "HZ", "NFS_V4"), **dict.fromkeys(map("CONFIG_{}".format, LOADABLE), "m")}
    groups = grouped({}, after, menus)
    apart = without_unloaded(groups, {}, after, menus, loaded=["xfs"])
    assert _names(apart)[:-1] == [{"HZ"}, {"NET"}, {"XFS"}]
    assert _names(apart)[-1] == {"E1000", "R8169", "NFS", "NFS_V4", "VIRTIO_BLK"}
    assert set(apart.unloaded) == {f"CONFIG_{name}" for name in _names(apart)[-1]}
    assert _required(apart, "E1000") == {"NET", "R8169", "NFS", "NFS_V4", "VIRTIO_BLK"}
    loaded = without_unloaded(groups, {}, after, menus, loaded=["xfs", "virtio-blk", "nfs"])
    assert set(loaded.unloaded) == {"CONFIG_E1000", "CONFIG_R8169"}


LOADABLE = ("E1000", "R8169", "XFS", "NFS", "VIRTIO_BLK")


def test_what_is_built_in_on_one_side_is_a_candidate_of_its_own() -> None:
    menus = _of_modules(A="", B="", C="")
    before = {"CONFIG_A": "m", "CONFIG_B": "m", "CONFIG_C": "m"}
    groups = grouped(before, {"CONFIG_A": "y"}, menus)
    apart = without_unloaded(groups, before, {"CONFIG_A": "y"}, menus, loaded=())
    assert _names(apart) == [{"A"}, {"B", "C"}]
    assert without_unloaded(groups, before, _on("A", "B", "C"), menus, loaded=()) == groups


@given(st.data())
def test_with_modules_apart_every_group_still_comes_after_what_it_requires(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 20))
    names = [f"O{at}" for at in range(count)]
    kinds = [data.draw(st.sampled_from(["bool", "tristate"])) for _ in names]
    options = {}
    for at, name in enumerate(names):
        on = data.draw(st.lists(st.sampled_from(names[:at]), max_size=3)) if at else []
        options[f"CONFIG_{name}"] = MenuOption(kind=kinds[at], prompt="?", depends=" && ".join(on))
    after = {
        f"CONFIG_{name}": "m" if kind == "tristate" else "y" for name, kind in zip(names, kinds, strict=True)
    }
    loaded = data.draw(st.lists(st.sampled_from(names), max_size=2))
    menus = Menus(options=options)
    groups = without_unloaded(grouped({}, after, menus), {}, after, menus, loaded)
    assert sorted(groups.options) == sorted(after), "none is lost, and none is there twice"
    seen: set[str] = set()
    for group in _names(groups):
        seen |= group
        for name in group:
            needed = set(options[f"CONFIG_{name}"].depends.split(" && ")) - {""}
            assert needed <= seen
