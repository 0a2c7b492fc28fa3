//! A trial's steps: each is done, and told in one result, whatever comes of it.

mod background;
mod capture;
mod clock;
mod departure;
mod files;
mod layout;
mod mount;
mod orphans;
mod process;
mod run;
mod settings;
mod walk;

use probes::failure;
use wire::steps::{Failure, Step, StepResult};

pub use self::background::Background;
use crate::modules;

/// Do one step. `background` holds what earlier ones have started.
pub fn perform_beside(number: u32, step: Step, background: &mut Background) -> StepResult {
    let mut result = StepResult {
        step: number,
        r#do: step.name().into(),
        ..StepResult::default()
    };
    result.failure = dispatch(step, background, &mut result).err();
    result
}

/// Do one step, with nothing that goes on beside it.
#[cfg(test)]
pub fn perform(number: u32, step: Step) -> StepResult {
    perform_beside(number, step, &mut Background::default())
}

fn dispatch(
    step: Step,
    background: &mut Background,
    result: &mut StepResult,
) -> Result<(), Failure> {
    match step {
        Step::Write(write) => settings::write(&write, result),
        Step::Read(read) => settings::read(&read, result),
        Step::Run(run) => run::run(&run, background.session(), result),
        Step::Start(start) => background.start(&start, result),
        Step::Stop(stop) => background.stop(&stop, result),
        Step::Push(push) => failure::told(&format!("push {}", push.path), files::push(&push)),
        Step::Collect(collect) => files::collect(&collect, result),
        Step::Directory(step) => failure::told(
            &format!("mkdir {}", step.path),
            std::fs::create_dir_all(&step.path),
        ),
        Step::Mount(mount) => failure::told(&format!("mount {}", mount.path), mount::mount(&mount)),
        Step::Module(module) => modules::load(&module),
        Step::Walk(walk) => walk::walk(&walk, result),
    }
}
