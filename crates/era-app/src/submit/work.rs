//! What is run: is it something that can be run?

use era_api::job::Work;
use era_api::secret::{OF_JOB_MAX, is_name};

use crate::wire::{BadField, Wrong, shown};

/// Most arguments of a command.
const ARGUMENTS_MAX: usize = 1024;
/// Most bytes of a command, and of an environment.
const BYTES_MAX: usize = 128 << 10;
/// Most environment variables.
const VARIABLES_MAX: usize = 256;
/// Most data sets.
pub(super) const INPUTS_MAX: usize = 64;
/// Longest path in a working folder.
const PATH_MAX: usize = 1024;

/// Longest part of an image's name that is repeated.
const IMAGE_SHOWN: usize = 64;

/// Refuses what can never be run, where tasks run in images and have terminals, or do not.
pub(super) fn check(work: &Work, runs_images: bool, terminals: bool) -> Result<(), BadField> {
    problems(work, runs_images, terminals).into_iter().next().map_or(Ok(()), Err)
}

/// All that is wrong with what is run, field by field.
pub(super) fn problems(work: &Work, runs_images: bool, terminals: bool) -> Vec<BadField> {
    let image = work.image.as_ref().filter(|_| !runs_images).map(|image| {
        let given = image.chars().take(IMAGE_SHOWN).collect::<String>().escape_debug().collect();
        BadField::new("work.image", Wrong::NoImages { given })
    });
    let terminal =
        (work.terminal && !terminals).then(|| BadField::new("work.terminal", Wrong::NoTerminals));
    let fields = [
        command(&work.command).err(),
        environment(work).err(),
        secrets(work).err(),
        image,
        terminal,
        inputs(work).err(),
    ];
    fields.into_iter().flatten().collect()
}

fn inputs(work: &Work) -> Result<(), BadField> {
    if work.inputs.len() > INPUTS_MAX {
        return Err(BadField::new(
            "work.inputs",
            Wrong::TooMany { most: INPUTS_MAX, what: "data sets" },
        ));
    }
    for input in &work.inputs {
        if let Some(path) = &input.path {
            inside(path)?;
        }
    }
    Ok(())
}

fn command(command: &[String]) -> Result<(), BadField> {
    let bad = |problem: Wrong| Err(BadField::new("work.command", problem));
    match command.first() {
        None => return bad(Wrong::NoCommand),
        Some(program) if program.trim().is_empty() => return bad(Wrong::NoProgram),
        Some(_) => {}
    }
    if command.len() > ARGUMENTS_MAX || command.iter().map(String::len).sum::<usize>() > BYTES_MAX {
        return bad(Wrong::LongCommand { most: ARGUMENTS_MAX, kib: BYTES_MAX >> 10 });
    }
    if command.iter().any(|argument| argument.contains('\0')) {
        return bad(Wrong::ZeroByte);
    }
    Ok(())
}

fn environment(work: &Work) -> Result<(), BadField> {
    let bad = |problem: Wrong| Err(BadField::new("work.env", problem));
    let bytes: usize = work.env.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if work.env.len() > VARIABLES_MAX || bytes > BYTES_MAX {
        return bad(Wrong::LargeEnvironment { most: VARIABLES_MAX, kib: BYTES_MAX >> 10 });
    }
    for (name, value) in &work.env {
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let given: String = name.chars().take(40).collect();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return bad(Wrong::VariableStart { given });
        }
        if !name.chars().all(letters) {
            return bad(Wrong::VariableLetters { given });
        }
        if name.starts_with("ERA_") {
            return bad(Wrong::VariableReserved { given });
        }
        if value.contains('\0') {
            return bad(Wrong::VariableZero { given });
        }
    }
    Ok(())
}

/// Whether there are secrets of these names is asked of the store.
fn secrets(work: &Work) -> Result<(), BadField> {
    let bad = |problem: Wrong| Err(BadField::new("work.secrets", problem));
    if work.secrets.len() > OF_JOB_MAX {
        return bad(Wrong::TooMany { most: OF_JOB_MAX, what: "secrets" });
    }
    for (place, name) in work.secrets.iter().enumerate() {
        let given = shown(name);
        if !is_name(name) {
            return bad(Wrong::SecretName { given });
        }
        if work.env.contains_key(name) || work.secrets[..place].contains(name) {
            return bad(Wrong::SecretTwice { given });
        }
    }
    Ok(())
}

/// A path that stays in the working folder.
fn inside(path: &str) -> Result<(), BadField> {
    let given: String = path.chars().take(64).collect::<String>().escape_debug().collect();
    let bad = |problem: Wrong| Err(BadField::new("work.inputs", problem));
    if path.is_empty() || path.len() > PATH_MAX {
        return bad(Wrong::PathLength { given, most: PATH_MAX });
    }
    if path.starts_with('/') || path.contains('\\') {
        return bad(Wrong::PathAbsolute { given });
    }
    if path.chars().any(char::is_control) {
        return bad(Wrong::PathControl { given });
    }
    if path.split('/').any(|step| matches!(step, "" | "." | "..")) {
        return bad(Wrong::PathSteps { given });
    }
    // They are the task's own: what stands there is not read-only, and leads wherever it says.
    if matches!(path.split('/').next(), Some("outputs" | "checkpoints")) {
        return bad(Wrong::PathKept { given });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(value: serde_json::Value) -> Result<(), String> {
        let work: Work = serde_json::from_value(value).unwrap();
        check(&work, false, false).map_err(|bad| format!("{}: {}", bad.field, bad.problem))
    }

    #[test]
    fn a_plain_command_with_data_is_fine() {
        work(serde_json::json!({
            "command": ["python", "train.py", ""],
            "env": {"LR": "0.1", "_x9": ""},
            "secrets": ["WANDB_API_KEY", "HF_TOKEN"],
            "inputs": [{"data": "mnist"}, {"data": "ada/cifar", "path": "data/cifar"}],
        }))
        .unwrap();
    }

    #[test]
    fn nothing_is_shown_in_the_folders_that_are_the_jobs_own() {
        for path in ["outputs", "outputs/d", "checkpoints/a/b"] {
            let inputs = serde_json::json!([{"data": "mnist", "path": path}]);
            let refused = work(serde_json::json!({"command": ["x"], "inputs": inputs}));
            let refused = refused.unwrap_err();
            assert!(refused.contains("are the job's own"), "{refused}");
        }
        let inputs = serde_json::json!([{"data": "mnist", "path": "data/outputs"}]);
        work(serde_json::json!({"command": ["x"], "inputs": inputs})).unwrap();
    }

    #[test]
    fn a_terminal_is_refused_where_there_are_none() {
        let given = serde_json::json!({"command": ["sh"], "terminal": true});
        let refused = work(given.clone()).unwrap_err();
        assert!(refused.starts_with("work.terminal: ") && refused.contains("era up"), "{refused}");
        let given: Work = serde_json::from_value(given).unwrap();
        assert!(check(&given, false, true).is_ok());
    }

    #[test]
    fn an_image_is_refused_where_it_would_be_passed_over() {
        let given = serde_json::json!({"command": ["x"], "image": "torch:2.9"});
        let refused = work(given.clone()).unwrap_err();
        assert!(refused.starts_with("work.image: "), "{refused}");
        assert!(refused.contains("`torch:2.9`") && refused.contains("docker://"), "{refused}");
        check(&serde_json::from_value(given).unwrap(), true, false).unwrap();
    }

    #[test]
    fn what_cannot_be_run_or_leaves_its_folder_is_refused_by_its_field() {
        let cases = [
            (serde_json::json!({}), "work.command"),
            (serde_json::json!({"command": [" "]}), "work.command"),
            (serde_json::json!({"command": ["a\u{0}b"]}), "work.command"),
            (serde_json::json!({"command": ["x"], "env": {"A=B": "1"}}), "work.env"),
            (serde_json::json!({"command": ["x"], "env": {"9A": "1"}}), "work.env"),
            (serde_json::json!({"command": ["x"], "env": {"ERA_JOB_ID": "1"}}), "work.env"),
            (serde_json::json!({"command": ["x"], "secrets": ["a"]}), "work.secrets"),
            (serde_json::json!({"command": ["x"], "secrets": ["ERA_X"]}), "work.secrets"),
            (serde_json::json!({"command": ["x"], "secrets": ["A", "A"]}), "work.secrets"),
            (serde_json::json!({"command": ["x"], "secrets": vec!["A"; 17]}), "work.secrets"),
            (
                serde_json::json!({"command": ["x"], "env": {"A": "1"}, "secrets": ["A"]}),
                "work.secrets",
            ),
        ];
        for (given, field) in cases {
            let refused = work(given.clone()).unwrap_err();
            assert!(refused.starts_with(field), "{given}: {refused}");
        }
        for path in ["/etc", "../x", "a/../b", "a//b", ".", "a\nb", "c:\\x", ""] {
            let given =
                serde_json::json!({"command": ["x"], "inputs": [{"data": "d", "path": path}]});
            assert!(work(given).unwrap_err().starts_with("work.inputs"), "{path}");
        }
    }
}
