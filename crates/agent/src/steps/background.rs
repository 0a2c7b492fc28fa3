//! The steps `start` and `stop`: one program that goes on while others run (a scheduler that is loaded).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::signal::{kill, killpg, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use probes::failure;
use wire::steps::{Failure, Start, StepResult, Stop};

use super::capture;
use super::clock::now_ns;
use super::process::{become_ordinary, command};

const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// What has been started and not stopped. At most one: what ends everybody else has to know whom to spare.
#[derive(Debug, Default)]
pub struct Background(Option<Started>);

#[derive(Debug)]
struct Started {
    name: String,
    /// Of its process, its group and its session.
    pid: Pid,
    /// In memory: nobody empties a pipe while other programs run.
    stdout: File,
    stderr: File,
    ended: Option<WaitStatus>,
}

/// A file, and what it is to say.
struct Sign<'a> {
    path: &'a str,
    value: &'a str,
}

impl Background {
    /// The session of the program that is running.
    pub fn session(&self) -> Option<Pid> {
        self.0.as_ref().map(|started| started.pid)
    }

    /// Start it, and wait for its sign. One that ends before, or never gives it, is ended and a failure.
    pub fn start(&mut self, step: &Start, result: &mut StepResult) -> Result<(), Failure> {
        let action = format!("start {}", step.argv.first().map_or("", String::as_str));
        if let Some(other) = &self.0 {
            let text = format!("{action}: {} is running already", other.name);
            return Err(failure::plain(text));
        }
        let mut started = failure::told(&action, Started::from(step))?;
        let sign = Sign {
            path: &step.path,
            value: &step.value,
        };
        match failure::told(&action, started.comes_up(&sign, step.limit_ns, result))? {
            None => {
                self.0 = Some(started);
                Ok(())
            }
            Some(problem) => {
                failure::told(&action, started.end(0, result))?;
                Err(failure::plain(format!("{action}: {problem}")))
            }
        }
    }

    /// End it, and wait until its sign is gone. One that has ended by itself is a failure.
    pub fn stop(&mut self, step: &Stop, result: &mut StepResult) -> Result<(), Failure> {
        let action = format!("stop {}", step.name);
        let Some(mut started) = self.0.take_if(|started| started.name == step.name) else {
            return Err(failure::plain(format!("{action}: it was not started")));
        };
        let early = failure::told(&action, started.has_ended())?;
        failure::told(&action, started.end(step.limit_ns, result))?;
        if early {
            return Err(failure::plain(format!("{action}: it had ended already")));
        }
        let sign = Sign {
            path: &step.path,
            value: &step.value,
        };
        match failure::told(&action, sign.is_given(step.limit_ns, result))? {
            true => Ok(()),
            false => Err(failure::plain(format!(
                "{action}: {}",
                sign.instead(result)
            ))),
        }
    }
}

impl Started {
    fn from(step: &Start) -> io::Result<Self> {
        let mut command = command(&step.argv, &step.environment, &step.directory)?;
        // SAFETY: the agent has one thread, so that the child may do between fork and exec whatever its parent may.
        unsafe { command.pre_exec(|| become_ordinary(false)) };
        Self::by(command, &step.name)
    }

    fn by(mut command: Command, name: &str) -> io::Result<Self> {
        let (stdout, stderr) = (in_memory()?, in_memory()?);
        command.stdout(Stdio::from(stdout.try_clone()?));
        command.stderr(Stdio::from(stderr.try_clone()?));
        let child = command.spawn()?;
        Ok(Self {
            name: name.into(),
            pid: Pid::from_raw(child.id() as i32),
            stdout,
            stderr,
            ended: None,
        })
    }

    /// What went wrong, where its sign does not come.
    fn comes_up(
        &mut self,
        sign: &Sign<'_>,
        limit_ns: u64,
        result: &mut StepResult,
    ) -> io::Result<Option<String>> {
        let end = now_ns()?.saturating_add(limit_ns);
        loop {
            if sign.is_there(result) {
                return Ok(None);
            }
            if self.has_ended()? {
                return Ok(Some("it ended before it was ready".into()));
            }
            if now_ns()? >= end {
                result.timed_out = true;
                return Ok(Some(sign.instead(result)));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn has_ended(&mut self) -> io::Result<bool> {
        if self.ended.is_none() {
            self.ended = match waitpid(self.pid, Some(WaitPidFlag::WNOHANG))? {
                WaitStatus::StillAlive => None,
                status => Some(status),
            };
        }
        Ok(self.ended.is_some())
    }

    /// Ask it to end, then make it; tell how it ended, and what it has written.
    fn end(mut self, limit_ns: u64, result: &mut StepResult) -> io::Result<()> {
        if !self.has_ended()? && limit_ns > 0 {
            kill(self.pid, Signal::SIGINT)?;
            let end = now_ns()?.saturating_add(limit_ns);
            while !self.has_ended()? && now_ns()? < end {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            result.timed_out = self.ended.is_none();
        }
        // Also what it has started: the group outlives its first process.
        let _ = killpg(self.pid, Signal::SIGKILL);
        let status = match self.ended {
            Some(status) => status,
            None => waitpid(self.pid, None)?,
        };
        match status {
            WaitStatus::Exited(_, code) => result.exit = Some(code),
            WaitStatus::Signaled(_, signal, _) => result.signal = Some(signal as i32),
            _ => {}
        }
        result.stdout = text_of(&self.stdout)?;
        result.stderr = text_of(&self.stderr)?;
        Ok(())
    }
}

impl Sign<'_> {
    fn is_there(&self, result: &mut StepResult) -> bool {
        if self.path.is_empty() {
            return true;
        }
        let text = fs::read_to_string(self.path).unwrap_or_default();
        result.content = text.strip_suffix('\n').unwrap_or(&text).into();
        result.content == self.value
    }

    fn is_given(&self, limit_ns: u64, result: &mut StepResult) -> io::Result<bool> {
        let end = now_ns()?.saturating_add(limit_ns);
        while !self.is_there(result) {
            if now_ns()? >= end {
                return Ok(false);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(true)
    }

    fn instead(&self, result: &StepResult) -> String {
        let (path, value) = (self.path, self.value);
        match fs::metadata(path) {
            Ok(_) => format!("{path} says {:?}, not {value:?}", result.content),
            Err(_) => format!("{path} is not there"),
        }
    }
}

fn in_memory() -> io::Result<File> {
    Ok(memfd_create("output", MFdFlags::MFD_CLOEXEC)?.into())
}

/// What the program wrote, as for a run: at most so much, and UTF-8. Where it writes next stays as it is.
fn text_of(file: &File) -> io::Result<String> {
    let size = file.metadata()?.len().min(capture::LIMIT as u64);
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{signal, SigHandler};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn start(script: &str, path: &str) -> Start {
        Start {
            name: "it".into(),
            argv: ["/bin/sh", "-c", script].map(String::from).into(),
            environment: [("PATH".into(), "/bin:/usr/bin".into())].into(),
            directory: "/".into(),
            path: path.into(),
            value: "ready".into(),
            limit_ns: 20 * SECOND,
        }
    }

    fn stop() -> Stop {
        Stop {
            name: "it".into(),
            path: String::new(),
            value: String::new(),
            limit_ns: 20 * SECOND,
        }
    }

    /// Without what containers forbid: personality(ADDR_NO_RANDOMIZE). tests/guest/machines/test_agent.py has the whole.
    fn started(script: &str) -> Started {
        let step = start(script, "");
        let mut command = command(&step.argv, &step.environment, &step.directory).unwrap();
        command.process_group(0);
        // What runs in a shell's background ignores SIGINT, and so would this program: a guest's does not.
        // SAFETY: sigaction(2) may be called between fork and exec (signal-safety(7)).
        unsafe { command.pre_exec(|| Ok(signal(Signal::SIGINT, SigHandler::SigDfl).map(drop)?)) };
        Started::by(command, "it").unwrap()
    }

    fn until_it_says(started: &Started, text: &str) {
        while text_of(&started.stdout).unwrap() != text {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    #[test]
    fn it_is_asked_to_end_and_told_what_it_wrote() {
        let it = started("trap 'echo bye >&2; exit 3' INT; echo up; while :; do sleep 0.01; done");
        until_it_says(&it, "up\n");
        let mut background = Background(Some(it));
        assert!(background.session().is_some());
        let mut result = StepResult::default();
        background.stop(&stop(), &mut result).unwrap();
        assert_eq!(
            (result.exit, result.stdout.as_str(), result.stderr.as_str()),
            (Some(3), "up\n", "bye\n")
        );
        let again = background.stop(&stop(), &mut result).unwrap_err();
        assert_eq!(again.text, "stop it: it was not started");
    }

    #[test]
    fn one_that_does_not_end_is_killed_and_one_that_has_ended_is_a_failure() {
        let it = started("trap '' INT; echo up; while :; do sleep 0.01; done");
        until_it_says(&it, "up\n");
        let mut result = StepResult::default();
        let mut stop = stop();
        stop.limit_ns = SECOND / 10;
        Background(Some(it)).stop(&stop, &mut result).unwrap();
        assert!(result.timed_out && result.signal == Some(9));

        let mut it = started("echo why >&2; exit 4");
        while !it.has_ended().unwrap() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        let mut result = StepResult::default();
        let failure = Background(Some(it)).stop(&stop, &mut result).unwrap_err();
        assert_eq!(failure.text, "stop it: it had ended already");
        assert_eq!((result.exit, result.stderr.as_str()), (Some(4), "why\n"));
    }

    #[test]
    fn its_sign_is_waited_for_as_long_as_it_lives() {
        let place = std::env::temp_dir().join(format!("ktrial-sign-{}", std::process::id()));
        let path = place.to_str().unwrap();
        let sign = Sign {
            path,
            value: "ready",
        };
        let mut result = StepResult::default();
        let mut it = started(&format!("sleep 0.05; echo ready > {path}; sleep 60"));
        assert_eq!(it.comes_up(&sign, 20 * SECOND, &mut result).unwrap(), None);
        it.end(0, &mut result).unwrap();
        fs::remove_file(&place).unwrap();

        let mut it = started("exit 5");
        let problem = it.comes_up(&sign, 20 * SECOND, &mut result).unwrap();
        assert_eq!(problem.unwrap(), "it ended before it was ready");

        fs::write(&place, "not yet\n").unwrap();
        let mut it = started("sleep 60");
        let problem = it
            .comes_up(&sign, SECOND / 10, &mut result)
            .unwrap()
            .unwrap();
        assert_eq!(problem, format!("{path} says \"not yet\", not \"ready\""));
        it.end(0, &mut result).unwrap();
        fs::remove_file(&place).unwrap();
    }
}
