//! GPUs as NVML knows them, and what their models are called here.

use era_core::resources::Gpu;
use era_core::units::Name;
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuDevice {
    /// NVML's number of it.
    pub index: u32,
    /// What it is called by `CUDA_VISIBLE_DEVICES`, whatever the order of devices is.
    pub uuid: String,
    /// What its maker calls it.
    pub product: String,
    pub memory_bytes: u64,
    /// Where it is plugged in.
    pub bus: String,
}

impl GpuDevice {
    /// As the scheduler sees it.
    pub fn as_resource(&self) -> Gpu {
        let memory = u32::try_from(self.memory_bytes >> 20).unwrap_or(u32::MAX);
        Gpu { model: model_name(&self.product), memory }
    }
}

/// The GPUs of this machine. Without a driver there are none; one that does not answer is left
/// out, and the log says so.
pub(super) fn find() -> Vec<GpuDevice> {
    let nvml = match Nvml::init() {
        Ok(nvml) => nvml,
        Err(NvmlError::LibloadingError(_) | NvmlError::DriverNotLoaded) => return Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "the GPU driver does not answer: no GPUs are used");
            return Vec::new();
        }
    };
    let count = nvml.device_count().unwrap_or_else(|error| {
        tracing::warn!(%error, "the GPU driver does not say how many GPUs there are");
        0
    });
    let mut found = Vec::new();
    for index in 0..count {
        match describe(&nvml, index) {
            Ok(gpu) => found.push(gpu),
            Err(error) => tracing::warn!(index, %error, "a GPU does not answer and is left out"),
        }
    }
    found
}

fn describe(nvml: &Nvml, index: u32) -> Result<GpuDevice, NvmlError> {
    let device = nvml.device_by_index(index)?;
    Ok(GpuDevice {
        index,
        uuid: device.uuid()?,
        product: device.name()?,
        memory_bytes: device.memory_info()?.total,
        bus: device.pci_info()?.bus_id,
    })
}

/// The model as people ask for it: `h100` for `NVIDIA H100 80GB HBM3`, `rtx4090` for `NVIDIA
/// GeForce RTX 4090`. Memory, socket and brand are not part of it: memory is asked for by itself.
pub fn model_name(product: &str) -> Name {
    let words: Vec<String> = product
        .to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && !says_no_model(word))
        .map(str::to_owned)
        .collect();
    let text = match &words[..] {
        // `RTX A6000` is asked for as `a6000`, `RTX 4090 Ti` as `rtx4090-ti`.
        [line, model, rest @ ..] if line == "rtx" || line == "gtx" => {
            let model = match model
                .strip_prefix('a')
                .filter(|n| n.starts_with(|c: char| c.is_ascii_digit()))
            {
                Some(_) => model.clone(),
                None => format!("{line}{model}"),
            };
            std::iter::once(&model).chain(rest).cloned().collect::<Vec<_>>().join("-")
        }
        _ => words.join("-"),
    };
    let short: String = text.chars().take(32).collect();
    Name::new(&short).or_else(|_| Name::new("gpu")).expect("`gpu` is a name")
}

fn says_no_model(word: &str) -> bool {
    let is_size = word.strip_suffix("gb").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    is_size
        || word.starts_with("sxm")
        || word.starts_with("hbm")
        || matches!(word, "nvidia" | "tesla" | "geforce" | "quadro" | "pcie" | "nvl" | "generation")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_called_as_people_ask_for_it() {
        for (product, name) in [
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("NVIDIA H100 PCIe", "h100"),
            ("NVIDIA H200", "h200"),
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("NVIDIA A100-PCIE-40GB", "a100"),
            ("Tesla V100-SXM2-16GB", "v100"),
            ("Tesla T4", "t4"),
            ("NVIDIA L40S", "l40s"),
            ("NVIDIA GH200 480GB", "gh200"),
            ("NVIDIA GeForce RTX 4090", "rtx4090"),
            ("NVIDIA GeForce RTX 3080 Ti", "rtx3080-ti"),
            ("NVIDIA GeForce GTX 1080 Ti", "gtx1080-ti"),
            ("NVIDIA RTX A6000", "a6000"),
            ("NVIDIA RTX 6000 Ada Generation", "rtx6000-ada"),
            ("Quadro RTX 8000", "rtx8000"),
            ("NVIDIA TITAN RTX", "titan-rtx"),
            ("", "gpu"),
            ("\u{fffd}\n", "gpu"),
        ] {
            assert_eq!(model_name(product).as_str(), name, "{product}");
        }
        assert!(model_name(&"very long ".repeat(40)).as_str().len() <= 32);
    }

    #[test]
    fn a_gpu_has_the_memory_that_it_has() {
        let gpu = GpuDevice {
            index: 0,
            uuid: "GPU-1".into(),
            product: "NVIDIA H100 80GB HBM3".into(),
            memory_bytes: 85_520_809_984,
            bus: "00000000:01:00.0".into(),
        };
        assert_eq!(gpu.as_resource().memory, 81_559);
    }
}
