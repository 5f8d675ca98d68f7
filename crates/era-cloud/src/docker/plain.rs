//! An instance on a plain engine: a container. Its one node is the engine's machine.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, ContainerSummary, ContainerSummaryStateEnum, DeviceRequest,
    EndpointSettings, GenericResources, HostConfig, HostConfigLogConfig, Mount, MountType,
    MountVolumeOptions, MountVolumeOptionsDriverConfig, NetworkingConfig, SystemInfo,
};

use super::instance::{EngineNode, Instance, Mounted, Volume};

pub(super) fn container(instance: &Instance) -> ContainerCreateBody {
    let networking = instance.network.as_ref().map(|(network, alias)| {
        let aliases = Some(vec![alias.clone()]);
        let settings = EndpointSettings { aliases, ..EndpointSettings::default() };
        NetworkingConfig { endpoints_config: Some([(network.clone(), settings)].into()) }
    });
    ContainerCreateBody {
        hostname: instance.network.as_ref().map(|(_, alias)| alias.clone()),
        user: instance.user.map(|(user, group)| format!("{user}:{group}")),
        env: Some(instance.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        // The image's own entry would stand between the guard and the task.
        entrypoint: Some(instance.command.clone()),
        cmd: Some(Vec::new()),
        image: Some(instance.image.clone()),
        working_dir: Some(instance.folder.clone()),
        labels: Some(instance.labels.clone()),
        stop_timeout: Some(i64::from(instance.grace_s)),
        host_config: Some(host(instance)),
        networking_config: networking,
        ..ContainerCreateBody::default()
    }
}

fn host(instance: &Instance) -> HostConfig {
    let limit = |amount: u64| i64::try_from(amount).ok().filter(|amount| *amount > 0);
    let gpus = (!instance.gpus.is_empty()).then(|| {
        vec![DeviceRequest {
            driver: Some("nvidia".into()),
            device_ids: Some(instance.gpus.clone()),
            capabilities: Some(vec![vec!["gpu".into()]]),
            ..DeviceRequest::default()
        }]
    });
    HostConfig {
        memory: limit(instance.memory_bytes),
        // No more with swap than without.
        memory_swap: limit(instance.memory_bytes),
        nano_cpus: limit(u64::from(instance.cpu_milli) * 1_000_000),
        pids_limit: limit(u64::from(instance.processes)),
        shm_size: limit(instance.shm_bytes),
        device_requests: gpus,
        readonly_rootfs: Some(instance.read_only),
        mounts: Some(instance.mounts.iter().map(mount).collect()),
        network_mode: instance.network.as_ref().map(|(network, _)| network.clone()),
        cap_drop: Some(vec!["ALL".into()]),
        security_opt: Some(vec!["no-new-privileges".into()]),
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".into()),
            config: Some(log_options(instance.log_bytes)),
        }),
        ..HostConfig::default()
    }
}

/// How much of a log an engine keeps: it is read as it comes, so little is enough.
pub(super) fn log_options(bytes: u64) -> HashMap<String, String> {
    let each = (bytes / 2).max(1 << 20);
    [("max-size", each.to_string()), ("max-file", "2".to_owned())]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
}

/// A mount, as containers and services alike are told. A volume with options has no name, so that
/// it goes with the container.
pub(super) fn mount(mounted: &Mounted) -> Mount {
    let (typ, source, options) = match &mounted.volume {
        Volume::Bind { path } => (MountType::BIND, Some(path.clone()), None),
        Volume::Local { name } => (MountType::VOLUME, Some(name.clone()), None),
        nfs @ Volume::Nfs { .. } => (MountType::VOLUME, None, Some(nfs.driver_options())),
    };
    Mount {
        target: Some(mounted.target.clone()),
        source,
        typ: Some(typ),
        read_only: Some(mounted.read_only),
        volume_options: options.map(|options| MountVolumeOptions {
            no_copy: Some(true),
            driver_config: Some(MountVolumeOptionsDriverConfig {
                name: Some("local".into()),
                options: Some(options),
            }),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

/// Whether a container that is listed runs, has ended, or neither yet.
pub(super) fn stage(listed: &ContainerSummary) -> Option<bool> {
    match listed.state {
        Some(
            ContainerSummaryStateEnum::RUNNING
            | ContainerSummaryStateEnum::PAUSED
            | ContainerSummaryStateEnum::RESTARTING,
        ) => Some(true),
        Some(ContainerSummaryStateEnum::EXITED | ContainerSummaryStateEnum::DEAD) => Some(false),
        _ => None,
    }
}

/// The machine of a plain engine.
pub(super) fn node(info: &SystemInfo) -> EngineNode {
    let said = info.labels.iter().flatten().filter_map(|label| label.split_once('='));
    EngineNode {
        id: info.id.clone().unwrap_or_default(),
        host: info.name.clone().unwrap_or_default(),
        since: String::new(),
        ready: true,
        active: true,
        nano_cpus: info.ncpu.unwrap_or(0).saturating_mul(1_000_000_000),
        memory_bytes: info.mem_total.unwrap_or(0),
        gpus: gpu_ids(info.generic_resources.as_ref()),
        labels: said.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        platform: (
            info.os_type.clone().unwrap_or_default(),
            info.architecture.clone().unwrap_or_default(),
        ),
    }
}

/// The GPUs that an engine advertises as `node-generic-resources`: `gpu=GPU-…` or
/// `NVIDIA-GPU=GPU-…`, one by one.
pub(super) fn gpu_ids(resources: Option<&GenericResources>) -> Vec<String> {
    let named = resources.into_iter().flatten().filter_map(|one| one.named_resource_spec.as_ref());
    let is_gpu = |kind: &str| kind.to_ascii_lowercase().ends_with("gpu");
    let mut ids: Vec<String> = named
        .filter(|spec| spec.kind.as_deref().is_some_and(is_gpu))
        .filter_map(|spec| spec.value.clone())
        .collect();
    ids.sort();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_volume_is_mounted_as_engines_have_it() {
        let mounted =
            |volume| mount(&Mounted { volume, target: "/run/era".into(), read_only: true });
        let bind = mounted(Volume::Bind { path: "/data/jobs/7".into() });
        assert_eq!(
            (bind.typ, bind.source.as_deref()),
            (Some(MountType::BIND), Some("/data/jobs/7"))
        );
        assert!(bind.volume_options.is_none());
        let local = mounted(Volume::Local { name: "scratch".into() });
        assert_eq!(
            (local.typ, local.source.as_deref()),
            (Some(MountType::VOLUME), Some("scratch"))
        );
        assert!(local.volume_options.is_none());

        // Without a name, so that it goes with its container.
        let nfs =
            mounted(Volume::Nfs { server: "10.0.0.1".into(), path: "/srv/era/jobs/7".into() });
        assert_eq!((nfs.typ, &nfs.source), (Some(MountType::VOLUME), &None));
        assert_eq!(nfs.read_only, Some(true));
        let options = nfs.volume_options.expect("options");
        assert_eq!(options.no_copy, Some(true), "what is in the image stays out of the export");
        let driver = options.driver_config.expect("a driver");
        assert_eq!(driver.name.as_deref(), Some("local"));
        let told = driver.options.expect("options");
        for (key, value) in
            [("type", "nfs"), ("o", "addr=10.0.0.1,rw,hard"), ("device", ":/srv/era/jobs/7")]
        {
            assert_eq!(told[key], value, "{key}");
        }
    }
}
