//! An instance on a Swarm: a service with one replica that is never restarted, placed on the node
//! that was chosen.

use std::collections::HashMap;

use bollard::models::{
    EndpointSpec, EndpointSpecModeEnum, Limit, Mount, MountTmpfsOptions, MountType,
    NetworkAttachmentConfig, Node, NodeSpecAvailabilityEnum, NodeState, ResourceObject,
    ServiceSpec, ServiceSpecMode, ServiceSpecModeReplicated, Task, TaskSpec, TaskSpecContainerSpec,
    TaskSpecContainerSpecFile, TaskSpecContainerSpecPrivileges, TaskSpecContainerSpecSecrets,
    TaskSpecLogDriver, TaskSpecPlacement, TaskSpecResources, TaskSpecRestartPolicy,
    TaskSpecRestartPolicyConditionEnum, TaskState,
};

use super::instance::{EngineNode, Instance, InstanceState};
use super::plain::{gpu_ids, log_options, mount};

/// What a secret is called in a task's `/run/secrets`.
const SECRET_FILE: &str = "era";
const NANOS: i64 = 1_000_000_000;

/// The service that an instance is; `secret` is the id of its secret.
pub(super) fn service(instance: &Instance, secret: Option<&str>, replicas: i64) -> ServiceSpec {
    let replicated = ServiceSpecModeReplicated { replicas: Some(replicas) };
    ServiceSpec {
        name: Some(instance.name.clone()),
        labels: Some(instance.labels.clone()),
        task_template: Some(template(instance, secret)),
        mode: Some(ServiceSpecMode { replicated: Some(replicated), ..ServiceSpecMode::default() }),
        // Names lead to the task itself, not to a balancer in front of it.
        endpoint_spec: instance
            .network
            .as_ref()
            .map(|_| EndpointSpec { mode: Some(EndpointSpecModeEnum::DNSRR), ports: None }),
        ..ServiceSpec::default()
    }
}

fn template(instance: &Instance, secret: Option<&str>) -> TaskSpec {
    let amount = |amount: u64| i64::try_from(amount).ok().filter(|amount| *amount > 0);
    let nano_cpus = amount(u64::from(instance.cpu_milli) * 1_000_000);
    let memory_bytes = amount(instance.memory_bytes);
    let pids = amount(u64::from(instance.processes));
    TaskSpec {
        container_spec: Some(container(instance, secret)),
        resources: Some(TaskSpecResources {
            limits: Some(Limit { nano_cpus, memory_bytes, pids }),
            reservations: instance.reserved.then_some(ResourceObject {
                nano_cpus,
                memory_bytes,
                generic_resources: None,
            }),
            ..TaskSpecResources::default()
        }),
        restart_policy: Some(TaskSpecRestartPolicy {
            condition: Some(TaskSpecRestartPolicyConditionEnum::NONE),
            max_attempts: Some(0),
            ..TaskSpecRestartPolicy::default()
        }),
        placement: instance.node.as_ref().map(|node| TaskSpecPlacement {
            constraints: Some(vec![format!("node.id=={node}")]),
            ..TaskSpecPlacement::default()
        }),
        networks: instance.network.as_ref().map(|(network, alias)| {
            vec![NetworkAttachmentConfig {
                target: Some(network.clone()),
                aliases: Some(vec![alias.clone()]),
                driver_opts: None,
            }]
        }),
        log_driver: Some(TaskSpecLogDriver {
            name: Some("json-file".into()),
            options: Some(log_options(instance.log_bytes)),
        }),
        ..TaskSpec::default()
    }
}

fn container(instance: &Instance, secret: Option<&str>) -> TaskSpecContainerSpec {
    let env = instance.env.iter().map(|(name, value)| format!("{name}={value}"));
    let mut mounts: Vec<Mount> = instance.mounts.iter().map(mount).collect();
    if let Ok(bytes @ 1..) = i64::try_from(instance.shm_bytes) {
        mounts.push(Mount {
            target: Some("/dev/shm".into()),
            typ: Some(MountType::TMPFS),
            tmpfs_options: Some(MountTmpfsOptions {
                size_bytes: Some(bytes),
                mode: Some(0o1777),
                ..MountTmpfsOptions::default()
            }),
            ..Mount::default()
        });
    }
    let secrets = secret.map(|id| {
        let (user, group) = instance.user.unwrap_or((0, 0));
        vec![TaskSpecContainerSpecSecrets {
            secret_id: Some(id.to_owned()),
            secret_name: Some(instance.name.clone()),
            file: Some(TaskSpecContainerSpecFile {
                name: Some(SECRET_FILE.into()),
                uid: Some(user.to_string()),
                gid: Some(group.to_string()),
                mode: Some(0o400),
            }),
        }]
    });
    TaskSpecContainerSpec {
        image: Some(instance.image.clone()),
        labels: Some(instance.labels.clone()),
        command: Some(instance.command.clone()),
        hostname: instance.network.as_ref().map(|(_, alias)| alias.clone()),
        env: Some(env.collect()),
        dir: Some(instance.folder.clone()),
        user: instance.user.map(|(user, group)| format!("{user}:{group}")),
        mounts: Some(mounts),
        read_only: Some(instance.read_only),
        stop_grace_period: Some(i64::from(instance.grace_s) * NANOS),
        secrets,
        init: Some(false),
        capability_drop: Some(vec!["ALL".into()]),
        privileges: Some(TaskSpecContainerSpecPrivileges {
            // Engines before 25.0 do not know it, and pass over it.
            no_new_privileges: Some(true),
            ..TaskSpecContainerSpecPrivileges::default()
        }),
        ..TaskSpecContainerSpec::default()
    }
}

/// The newest task of each service, by the service's id: one that was stopped and started again has
/// an older one, which ended.
pub(super) fn newest(tasks: Vec<Task>) -> HashMap<String, Task> {
    // Without the zone, which is always the same, a shorter fraction sorts before a longer one.
    let since = |task: &Task| {
        let at = task.created_at.clone().unwrap_or_default();
        (task.desired_state == Some(TaskState::RUNNING), at.trim_end_matches('Z').to_owned())
    };
    let mut newest: HashMap<String, Task> = HashMap::new();
    for task in tasks {
        let Some(service) = task.service_id.clone() else { continue };
        if newest.get(&service).is_none_or(|other| since(other) < since(&task)) {
            newest.insert(service, task);
        }
    }
    newest
}

/// The labels of the instance that a service's task is: the service itself may be gone.
pub(super) fn labels(task: &Task) -> HashMap<String, String> {
    let container = task.spec.as_ref().and_then(|spec| spec.container_spec.as_ref());
    container.and_then(|container| container.labels.clone()).unwrap_or_default()
}

/// How a service's task is.
pub(super) fn seen(task: &Task) -> InstanceState {
    let status = task.status.clone().unwrap_or_default();
    let says = || {
        let words = [status.err.as_deref(), status.message.as_deref()];
        words.into_iter().flatten().find(|text| !text.is_empty()).unwrap_or("no word").to_owned()
    };
    let container = status.container_status.as_ref();
    let code = container.and_then(|container| container.exit_code);
    let code = code.and_then(|code| i32::try_from(code).ok()).unwrap_or(0);
    // A container that never had a process failed to start.
    let began =
        container.is_some_and(|container| container.pid.is_some_and(|pid| pid > 0) || code != 0);
    match status.state {
        Some(TaskState::RUNNING) => InstanceState::Runs,
        Some(TaskState::COMPLETE) => InstanceState::Ended(code),
        Some(TaskState::FAILED) if began || code != 0 => InstanceState::Ended(code.max(1)),
        Some(TaskState::FAILED | TaskState::REJECTED) => InstanceState::Failed(says()),
        // The engine ended it, for a drain or a removal: no doing of its own.
        Some(TaskState::SHUTDOWN | TaskState::REMOVE | TaskState::ORPHANED) => {
            InstanceState::Removed
        }
        _ => InstanceState::Waits(says()),
    }
}

/// A node of a Swarm.
pub(super) fn node(node: &Node) -> EngineNode {
    let described = node.description.clone().unwrap_or_default();
    let spec = node.spec.clone().unwrap_or_default();
    let has = described.resources.unwrap_or_default();
    let state = node.status.as_ref().and_then(|status| status.state);
    let platform = described.platform.unwrap_or_default();
    let mut labels = spec.labels.unwrap_or_default();
    let engine = described.engine.and_then(|engine| engine.labels).unwrap_or_default();
    for (key, value) in engine {
        labels.entry(key).or_insert(value);
    }
    EngineNode {
        id: node.id.clone().unwrap_or_default(),
        host: described.hostname.unwrap_or_default(),
        since: node.created_at.clone().unwrap_or_default(),
        ready: state == Some(NodeState::READY),
        active: spec.availability == Some(NodeSpecAvailabilityEnum::ACTIVE),
        nano_cpus: has.nano_cpus.unwrap_or(0),
        memory_bytes: has.memory_bytes.unwrap_or(0),
        gpus: gpu_ids(has.generic_resources.as_ref()),
        labels,
        platform: (platform.os.unwrap_or_default(), platform.architecture.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::{ContainerStatus, TaskStatus};

    fn task(state: TaskState, pid: Option<i64>, exit_code: Option<i64>) -> Task {
        let container_status = Some(ContainerStatus { pid, exit_code, container_id: None });
        let err = Some("why".to_owned());
        let status = TaskStatus { state: Some(state), container_status, err, ..Default::default() };
        Task { status: Some(status), ..Task::default() }
    }

    #[test]
    fn of_a_services_tasks_the_newest_counts() {
        let one = |state, desired_state, at: &str| Task {
            service_id: Some("s".into()),
            created_at: Some(at.into()),
            desired_state: Some(desired_state),
            ..task(state, Some(9), None)
        };
        let old = one(TaskState::SHUTDOWN, TaskState::SHUTDOWN, "2026-01-01T00:00:05.12Z");
        let new = one(TaskState::RUNNING, TaskState::RUNNING, "2026-01-01T00:00:05.123Z");
        for tasks in [vec![old.clone(), new.clone()], vec![new, old]] {
            assert_eq!(seen(&newest(tasks)["s"]), InstanceState::Runs);
        }
        let first = one(TaskState::SHUTDOWN, TaskState::SHUTDOWN, "2026-01-01T00:00:05Z");
        let second = one(TaskState::COMPLETE, TaskState::SHUTDOWN, "2026-01-01T00:00:05.1Z");
        for tasks in [vec![first.clone(), second.clone()], vec![second, first]] {
            assert_eq!(seen(&newest(tasks)["s"]), InstanceState::Ended(0));
        }
    }

    #[test]
    fn what_ran_has_ended_and_what_never_ran_has_failed() {
        assert_eq!(seen(&task(TaskState::COMPLETE, Some(9), Some(0))), InstanceState::Ended(0));
        assert_eq!(seen(&task(TaskState::FAILED, None, Some(3))), InstanceState::Ended(3));
        assert_eq!(
            seen(&task(TaskState::REJECTED, None, None)),
            InstanceState::Failed("why".into())
        );
        assert_eq!(
            seen(&task(TaskState::FAILED, Some(0), None)),
            InstanceState::Failed("why".into())
        );
        assert_eq!(seen(&task(TaskState::PENDING, None, None)), InstanceState::Waits("why".into()));
        assert_eq!(seen(&task(TaskState::SHUTDOWN, Some(9), Some(143))), InstanceState::Removed);
        assert_eq!(seen(&task(TaskState::ORPHANED, None, None)), InstanceState::Removed);
    }
}
