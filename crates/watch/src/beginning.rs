//! Whether that has happened at which counting begins.

use crate::order::What;

/// Whether what is waited for has happened.
#[derive(Debug)]
pub struct Beginning {
    what: What,
    seen: u64,
    tails: Vec<Vec<u8>>,
}

impl Beginning {
    /// Of a program with so many outputs.
    pub fn of(what: What, outputs: usize) -> Self {
        Self {
            what,
            seen: 0,
            tails: vec![Vec::new(); outputs],
        }
    }

    /// Whether it looks at what is written.
    pub fn reads_outputs(&self) -> bool {
        matches!(self.what, What::Text(_) | What::Outputs(_))
    }

    /// A system call has returned; whether this was it.
    pub fn returned(&mut self, number: u64) -> bool {
        match self.what {
            What::Call(awaited, times) if awaited == number => self.again(times),
            _ => false,
        }
    }

    /// A signal is about to be delivered; whether this was it.
    pub fn signalled(&mut self, number: i32) -> bool {
        match self.what {
            What::Signal(awaited, times) if awaited == number => self.again(times),
            _ => false,
        }
    }

    /// This was written to one of the outputs; whether this was it. A text may come in pieces.
    pub fn wrote(&mut self, output: usize, data: &[u8]) -> bool {
        match &self.what {
            What::Outputs(times) => {
                let times = *times;
                self.again(times)
            }
            What::Text(text) => {
                let tail = &mut self.tails[output];
                tail.extend(data);
                let found = tail
                    .windows(text.len().max(1))
                    .any(|part| part == &text[..]);
                let old = tail.len().saturating_sub(text.len().saturating_sub(1));
                tail.drain(..old);
                found
            }
            _ => false,
        }
    }

    fn again(&mut self, times: u64) -> bool {
        self.seen += 1;
        self.seen == times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_whole_and_in_pieces_of_one_output() {
        let mut beginning = Beginning::of(What::Text(b"listening".to_vec()), 2);
        assert!(!beginning.wrote(0, b"now list"));
        assert!(!beginning.wrote(1, b"ening"));
        assert!(beginning.wrote(0, b"ening on 80"));
        let mut whole = Beginning::of(What::Text(b"up".to_vec()), 1);
        assert!(!whole.wrote(0, b"u"));
        assert!(!whole.wrote(0, b" p"));
        assert!(whole.wrote(0, b"it is up."));
    }

    #[test]
    fn the_nth_of_its_kind_is_the_one() {
        let mut calls = Beginning::of(What::Call(43, 2), 0);
        assert_eq!(
            [43, 1, 43, 43].map(|number| calls.returned(number)),
            [false, false, true, false]
        );
        let mut signals = Beginning::of(What::Signal(10, 1), 0);
        assert_eq!(
            [12, 10].map(|number| signals.signalled(number)),
            [false, true]
        );
        let mut outputs = Beginning::of(What::Outputs(2), 1);
        assert_eq!(
            [b"a", b"b"].map(|data| outputs.wrote(0, data)),
            [false, true]
        );
    }
}
