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
    pub fn of(times: &[f64]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self {
            operations: sorted.len(),
            minimum: sorted[0],
            median: median(&sorted),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
        }
    }
}

/// The median of numbers that are sorted already, and not none.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_number_has_its_middle_as_median() {
        let found = Statistics::of(&[5.0, 1.0, 900.0]);
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
        assert_eq!(Statistics::of(&[4.0, 1.0, 2.0, 9.0]).median, 3.0);
    }

    #[test]
    fn one_operation_is_its_own_minimum_median_and_mean() {
        let found = Statistics::of(&[7.0]);
        assert_eq!((found.minimum, found.median, found.mean), (7.0, 7.0, 7.0));
    }
}
