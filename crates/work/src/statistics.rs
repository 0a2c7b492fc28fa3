//! Minimum, median and mean of the times of all operations.

/// The statistics over every operation of every pass that counts.
#[derive(Debug, PartialEq)]
pub struct Statistics {
    /// How many operations were measured.
    pub operations: usize,
    /// The cheapest operation.
    pub minimum: f64,
    /// The middle operation; between two middle ones, halfway.
    pub median: f64,
    /// The sum over the number.
    pub mean: f64,
}

impl Statistics {
    /// Of `times`, which must not be empty, in any order.
    pub fn of(times: &[u64]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let sum: u128 = sorted.iter().map(|&time| u128::from(time)).sum();
        Self {
            operations: sorted.len(),
            minimum: sorted[0] as f64,
            median: median(&sorted),
            mean: sum as f64 / sorted.len() as f64,
        }
    }
}

/// The median of numbers that are sorted already, and not none.
pub fn median(sorted: &[u64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle] as f64
    } else {
        (sorted[middle - 1] as f64 + sorted[middle] as f64) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_number_has_its_middle_as_median() {
        let found = Statistics::of(&[5, 1, 900]);
        let expected = Statistics {
            operations: 3,
            minimum: 1.0,
            median: 5.0,
            mean: 302.0,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn an_even_number_has_its_median_halfway() {
        assert_eq!(Statistics::of(&[4, 1, 2, 9]).median, 3.0);
    }

    #[test]
    fn one_operation_is_its_own_minimum_median_and_mean() {
        let found = Statistics::of(&[7]);
        assert_eq!((found.minimum, found.median, found.mean), (7.0, 7.0, 7.0));
    }

    #[test]
    fn large_times_do_not_overflow() {
        assert_eq!(Statistics::of(&[u64::MAX, u64::MAX]).mean, u64::MAX as f64);
    }
}
