//! The last system calls that failed.

use std::collections::VecDeque;

const MOST: usize = 64;
/// From here on an errno is the kernel's own: the call is made again (include/linux/errno.h).
const RESTARTED: i64 = 512;

/// As lines.
#[derive(Debug, Default)]
pub struct Failures(VecDeque<String>);

impl Failures {
    /// One call has failed: its number, what it returned, its arguments.
    pub fn add(&mut self, number: u64, returned: i64, arguments: &str) {
        if -returned >= RESTARTED {
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0
            .push_back(format!("{number}\t{}\t{arguments}\n", -returned));
    }

    /// Of all that are kept, in order.
    pub fn text(&self) -> String {
        self.0.iter().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_and_restarted_calls_are_none() {
        let mut failures = Failures::default();
        for number in 0..70 {
            failures.add(number, -2, "0");
        }
        failures.add(1, -512, "0");
        let text = failures.text();
        assert!(text.starts_with("6\t2\t0\n") && text.ends_with("69\t2\t0\n"));
        assert_eq!(text.lines().count(), MOST);
    }
}
