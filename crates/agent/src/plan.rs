//! What the host laid out for the guest, before boot and for this trial.

use std::fs;

use serde::de::DeserializeOwned;
use serde::Deserialize;
use wire::boot::{BootPlan, Plan};
use wire::PROTOCOL;

use crate::fw_cfg;
use crate::ports::Ports;

const BOOT_PLAN: &str = "/ktrial/boot.json";
const PLAN: &str = "opt/ktrial/plan";

/// What is done before the snapshot.
pub fn read_boot_plan() -> Result<BootPlan, String> {
    let text = fs::read(BOOT_PLAN).map_err(|error| format!("cannot read {BOOT_PLAN}: {error}"))?;
    parse(BOOT_PLAN, &text)
}

/// What this trial does.
pub fn read_plan(ports: &mut Ports) -> Result<Plan, String> {
    let text = fw_cfg::read_file(ports, PLAN)?;
    parse(PLAN, &text)
}

#[derive(Deserialize)]
struct Versioned {
    protocol: u32,
}

fn parse<T: DeserializeOwned>(name: &str, text: &[u8]) -> Result<T, String> {
    let wrong = |error: serde_json::Error| format!("{name}: {error}");
    let Versioned { protocol } = serde_json::from_slice(text).map_err(wrong)?;
    if protocol != PROTOCOL {
        return Err(format!(
            "{name}: protocol {protocol}; this agent speaks {PROTOCOL}"
        ));
    }
    serde_json::from_slice(text).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        parse::<Plan>("plan", text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_plan_of_another_protocol_is_refused_before_its_steps_are_read() {
        let text = r#"{"protocol": 2, "steps": [{"do": "dance"}]}"#;
        assert_eq!(told(text), "plan: protocol 2; this agent speaks 1");
    }

    #[test]
    fn a_step_that_is_not_known_is_named_with_its_place() {
        let text = told("{\"protocol\": 1, \"steps\": [\n{\"do\": \"dance\"}]}");
        assert!(
            text.contains("unknown variant `dance`") && text.contains("line 2"),
            "{text}"
        );
    }

    #[test]
    fn a_key_that_is_not_known_is_named() {
        let text = told(r#"{"protocol": 1, "steps": [{"do": "read", "path": "/a", "limit": 3}]}"#);
        assert!(text.contains("unknown field `limit`"), "{text}");
    }
}
