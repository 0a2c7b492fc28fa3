//! One QEMU, many trials: `rewind.so` (crates/rewind), where it is preloaded, tells as the guest goes back to the
//! snapshot.
//!
//! Translations stay, and with them the numbers that they count by. What a trial is told must be what it is told in a
//! process of its own; where that is not certain, the process ends, and where the last trial may have been told
//! something else already, that is done again.

use crate::guest::named;
use crate::layout::{FLOWS, MOST_FUNCTIONS, MOST_PAGES, MOST_REPEATS};
use crate::plugin::{with_plugin, Plugin};
use crate::region::Regions;
use crate::verdict::{room, Verdict};
use core::ffi::{c_int, c_void};

type Listener = extern "C" fn() -> c_int;
type Listen = extern "C" fn(Listener);

/// Have ourselves told.
pub fn listen() {
    if let Some(listen) = named(c"rewind_listen") {
        // SAFETY: crates/rewind has it with this type.
        let listen = unsafe { core::mem::transmute::<*mut c_void, Listen>(listen) };
        listen(begin_anew);
    }
}

extern "C" fn begin_anew() -> c_int {
    let mut verdict = Verdict::Ends;
    with_plugin(|plugin| verdict = plugin.begin_anew());
    verdict as c_int
}

impl Plugin {
    /// The guest stands still, at the snapshot.
    fn begin_anew(&mut self) -> Verdict {
        let used = self.used();
        let verdicts = [
            room(used.functions, MOST_FUNCTIONS),
            room(used.pages, MOST_PAGES),
            room(used.repeats, MOST_REPEATS),
            self.repeats.begin_anew(),
        ];
        self.regions = Regions::default();
        self.flows = self.counters.values()[FLOWS];
        self.follow(|calls, counted| calls.begin_anew(counted));
        let is_first = self.trials == 0;
        self.trials += 1;
        match verdicts.into_iter().max().unwrap_or(Verdict::Ends) {
            // The first trial had a process of its own.
            Verdict::Doubtful if is_first => Verdict::Ends,
            verdict => verdict,
        }
    }
}
