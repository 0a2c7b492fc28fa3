//! The plugin's arguments: `name=value`, as QEMU hands them over.

use alloc::format;
use alloc::string::String;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// File of symbols; empty: everything in the kernel is one function.
    pub symbols: String,
    /// File that the counts are written to.
    pub out: String,
    /// Write each operation's count, not only their statistics.
    pub vector: bool,
    /// Follow calls and returns.
    pub calls: bool,
    /// Count by callback even where QEMU could count inline.
    pub callbacks: bool,
}

impl Arguments {
    /// Reads them; the error says what is wrong and what is allowed.
    pub fn read<'a>(all: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let (symbols, out) = (String::new(), String::new());
        let mut read = Self { symbols, out, vector: false, calls: false, callbacks: false };
        for argument in all {
            let Some((name, value)) = argument.split_once('=') else {
                return Err(format!("argument `{argument}` is not of the form name=value"));
            };
            match name {
                "symbols" => read.symbols = value.into(),
                "out" => read.out = value.into(),
                "vector" => read.vector = switch(name, value)?,
                "calls" => read.calls = switch(name, value)?,
                "callbacks" => read.callbacks = switch(name, value)?,
                _ => return Err(format!("unknown argument `{name}` (known: symbols, out, vector, calls, callbacks)")),
            }
        }
        if read.out.is_empty() {
            return Err("argument out=FILE is missing".into());
        }
        Ok(read)
    }
}

fn switch(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("argument {name}={value}: neither on nor off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(all: &[&str]) -> Result<Arguments, String> {
        Arguments::read(all.iter().copied())
    }

    #[test]
    fn all_arguments() {
        let read = read(&["symbols=/a=b", "out=/o", "vector=on", "calls=on", "callbacks=on"]).unwrap();
        let (symbols, out) = ("/a=b".into(), "/o".into());
        assert_eq!(read, Arguments { symbols, out, vector: true, calls: true, callbacks: true });
    }

    #[test]
    fn bad_arguments_are_named() {
        for (bad, said) in [
            (&["out"][..], "`out` is not of the form"),
            (&["out=x", "colour=red"], "unknown argument `colour`"),
            (&["symbols=x"], "out=FILE is missing"),
            (&["out=x", "vector=yes"], "vector=yes: neither on nor off"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
