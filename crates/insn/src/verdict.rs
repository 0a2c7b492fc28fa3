//! What becomes of a process that serves many trials, when one of them has ended: crates/rewind/src/listener.rs.

/// What becomes of the process: whether it serves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It may count another trial.
    Again = 0,
    /// It may not.
    Ends = 1,
    /// Nor is what it has counted last to be believed.
    Doubtful = 2,
}

/// How many of something are numbered, of so many that can be: half of the room is for the next trial.
pub fn room(used: usize, most: usize) -> Verdict {
    match used {
        _ if used >= most => Verdict::Doubtful,
        _ if 2 * used > most => Verdict::Ends,
        _ => Verdict::Again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_room_is_for_the_next_trial() {
        for (used, expected) in [
            (0, Verdict::Again),
            (50, Verdict::Again),
            (51, Verdict::Ends),
            (99, Verdict::Ends),
            (100, Verdict::Doubtful),
        ] {
            assert_eq!(room(used, 100), expected, "{used}");
        }
    }
}
