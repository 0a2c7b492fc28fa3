//! The command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// What is to be seen.
#[derive(Debug, PartialEq)]
pub enum What {
    /// A text in what the program writes.
    Text(Vec<u8>),
    /// So many writes of output.
    Outputs(u64),
    /// A system call by its number, so many times.
    Call(u64, u64),
    /// A signal by its number, so many times.
    Signal(i32, u64),
    /// All calls that fail; the file that they are written to.
    Failures(OsString),
}

/// What is to be seen in which program.
#[derive(Debug, PartialEq)]
pub struct Order {
    /// What.
    pub what: What,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
}

impl Order {
    /// From the words after the program's own name; None where they make no sense.
    pub fn read(words: &[OsString]) -> Option<Self> {
        let end = words.iter().position(|word| word == "--")?;
        let (asked, argv) = (&words[..end], words[end + 1..].to_vec());
        let number = |word: &OsString| word.to_str()?.parse::<u64>().ok();
        let what = match (asked.first()?.to_str()?, &asked[1..]) {
            ("--text", [text]) => What::Text(text.as_bytes().to_vec()),
            ("--outputs", [times]) => What::Outputs(number(times)?),
            ("--call", [call, times]) => What::Call(number(call)?, number(times)?),
            ("--signal", [signal, times]) => {
                What::Signal(i32::try_from(number(signal)?).ok()?, number(times)?)
            }
            ("--failures", [file]) => What::Failures(file.clone()),
            _ => return None,
        };
        (!argv.is_empty()).then_some(Self { what, argv })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Order> {
        Order::read(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_asked_for_stands_before_the_program() {
        let order = read("--call 43 2 -- server --text").unwrap();
        assert_eq!(order.what, What::Call(43, 2));
        assert_eq!(order.argv, ["server", "--text"]);
        assert_eq!(
            read("--text up -- x").unwrap().what,
            What::Text(b"up".to_vec())
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--call 43 -- x",
            "--call a 1 -- x",
            "--outputs 1 --",
            "--other -- x",
            "x",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
