//! The plugin's arguments: `name=value`, as QEMU hands them over.

use crate::caches::Shapes;
use crate::machine::{self, Machine};
use crate::set_associative::Shape;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const KNOWN: &str = "symbols, out, vector, calls, caches, l1i, l1d, llc, callbacks, model-…";

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
    /// Model caches of these shapes.
    pub caches: Option<Shapes>,
    /// Model cycles on this machine.
    pub model: Option<Machine>,
    /// Count by callback even where QEMU could count inline.
    pub callbacks: bool,
}

impl Arguments {
    /// Reads them; the error says what is wrong and what is allowed.
    pub fn read<'a>(all: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let (symbols, out) = (String::new(), String::new());
        let mut read = Self {
            symbols,
            out,
            vector: false,
            calls: false,
            caches: None,
            model: None,
            callbacks: false,
        };
        let mut model = Vec::new();
        for argument in all {
            let Some((name, value)) = argument.split_once('=') else {
                return Err(format!(
                    "argument `{argument}` is not of the form name=value"
                ));
            };
            if let Some(part) = name.strip_prefix(machine::PREFIX) {
                model.push((part, value));
                continue;
            }
            match name {
                "symbols" => read.symbols = value.into(),
                "out" => read.out = value.into(),
                "vector" => read.vector = switch(name, value)?,
                "calls" => read.calls = switch(name, value)?,
                "caches" if switch(name, value)? => drop(read.caches.get_or_insert_default()),
                "caches" => read.caches = None,
                "l1i" => read.caches.get_or_insert_default().code = shape(name, value)?,
                "l1d" => read.caches.get_or_insert_default().data = shape(name, value)?,
                "llc" => read.caches.get_or_insert_default().last = shape(name, value)?,
                "callbacks" => read.callbacks = switch(name, value)?,
                _ => return Err(format!("unknown argument `{name}` (known: {KNOWN})")),
            }
        }
        if !model.is_empty() {
            read.model = Some(Machine::read(&model)?);
        }
        if read.out.is_empty() {
            return Err("argument out=FILE is missing".into());
        }
        Ok(read)
    }
}

fn shape(name: &str, value: &str) -> Result<Shape, String> {
    Shape::read(value).map_err(|problem| format!("argument {name}: {problem}"))
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
    use crate::set_associative::Replacement;

    fn read(all: &[&str]) -> Result<Arguments, String> {
        Arguments::read(all.iter().copied())
    }

    #[test]
    fn all_arguments() {
        let read = read(&[
            "symbols=/a=b",
            "out=/o",
            "vector=on",
            "calls=on",
            "callbacks=on",
        ])
        .unwrap();
        let (symbols, out) = ("/a=b".into(), "/o".into());
        assert_eq!(
            read,
            Arguments {
                symbols,
                out,
                vector: true,
                calls: true,
                caches: None,
                model: None,
                callbacks: true
            }
        );
    }

    #[test]
    fn caches_have_shapes() {
        assert_eq!(
            read(&["out=x", "caches=on"]).unwrap().caches,
            Some(Shapes::default())
        );
        let data = Shape {
            size: 49152,
            ways: 12,
            line: 64,
            replacement: Replacement::Lru,
        };
        let expected = Shapes {
            data,
            ..Shapes::default()
        };
        assert_eq!(
            read(&["out=x", "l1d=49152:12:64"]).unwrap().caches,
            Some(expected)
        );
    }

    #[test]
    fn bad_arguments_are_named() {
        for (bad, said) in [
            (&["out"][..], "`out` is not of the form"),
            (&["out=x", "colour=red"], "unknown argument `colour`"),
            (&["out=x", "llc=1"], "argument llc: 1 is not of the form"),
            (&["symbols=x"], "out=FILE is missing"),
            (
                &["out=x", "model-l1i=1"],
                "argument model-branches is missing",
            ),
            (&["out=x", "vector=yes"], "vector=yes: neither on nor off"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
