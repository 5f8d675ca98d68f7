//! The two lists of the experiment as they were published: nodes, and pods to draw from.
//!
//! Columns are found by their names, so their order does not matter and others may stand beside
//! them. Whether a pod could fit anywhere is not asked here.

use std::collections::BTreeSet;
use std::path::Path;

use csv::StringRecord;
use era_core::resources::{GPUS_PER_NODE_MAX, Resources, WHOLE_GPU};
use era_core::units::Name;

use crate::BadInput;

/// Most rows of a list.
const ROWS_MAX: usize = 1_000_000;
/// Largest number in a column: beyond it is a mistake, not a machine.
const AMOUNT_MAX: u32 = 1_000_000_000;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedNode {
    pub name: Name,
    /// Thousandths of a core.
    pub cpu: u32,
    pub memory: u32,
    /// How many GPUs.
    pub gpus: u32,
    pub model: Name,
}

/// A pod: one replica that asks for part of one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pod {
    /// Thousandths of a core.
    pub cpu: u32,
    pub memory: u32,
    /// Thousandths of a GPU: a share of one, or a multiple of a whole one.
    pub gpu: u32,
    /// The models that will do; any if there are none.
    pub models: BTreeSet<Name>,
}

impl Pod {
    /// What it needs, for the core.
    pub(super) fn resources(&self) -> Resources {
        let only = if self.models.len() == 1 { self.models.first() } else { None };
        Resources {
            cpu: self.cpu,
            memory: self.memory,
            gpu: self.gpu,
            gpu_model: only.cloned(),
            ..Resources::default()
        }
    }
}

/// Reads a list of nodes: `sn`, `cpu_milli`, `memory_mib`, `gpu`, `model`.
pub fn read_nodes(file: &Path) -> Result<Vec<ListedNode>, BadInput> {
    let table = Table::open(file)?;
    let columns = table.columns(["sn", "cpu_milli", "memory_mib", "gpu", "model"])?;
    let mut names = BTreeSet::new();
    let nodes = table.rows(|row| {
        let [name, cpu, memory, gpus, model] = columns;
        let node = ListedNode {
            name: row.name(name)?,
            cpu: row.number(cpu, AMOUNT_MAX)?,
            memory: row.number(memory, AMOUNT_MAX)?,
            gpus: row.number(gpus, GPUS_PER_NODE_MAX as u32)?,
            model: row.name(model)?,
        };
        if !names.insert(node.name.clone()) {
            return Err(row.bad(name, "another node has this name already"));
        }
        Ok(node)
    })?;
    if nodes.iter().all(|node| node.gpus == 0) {
        return Err(BadInput::new("no node has a GPU: give at least one").file(file).field("gpu"));
    }
    Ok(nodes)
}

/// Reads a list of pods: `cpu_milli`, `memory_mib`, `num_gpu`, `gpu_milli`, `gpu_spec`.
pub fn read_pods(file: &Path) -> Result<Vec<Pod>, BadInput> {
    let table = Table::open(file)?;
    let names = ["cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"];
    let columns = table.columns(names)?;
    let pods = table.rows(|row| {
        let [cpu, memory, count, share, models] = columns;
        Ok(Pod {
            cpu: row.number(cpu, AMOUNT_MAX)?,
            memory: row.number(memory, AMOUNT_MAX)?,
            gpu: row.gpu(count, share)?,
            models: row.models(models)?,
        })
    })?;
    if pods.iter().all(|pod| pod.gpu == 0) {
        let problem = "no pod asks for a GPU, so their demand never arrives";
        return Err(BadInput::new(problem).file(file).field("num_gpu"));
    }
    Ok(pods)
}

/// A file with a header.
struct Table<'a> {
    file: &'a Path,
    header: StringRecord,
    reader: csv::Reader<std::fs::File>,
}

impl<'a> Table<'a> {
    fn open(file: &'a Path) -> Result<Table<'a>, BadInput> {
        let unreadable = |error: csv::Error| BadInput::new(error.to_string()).file(file);
        let mut reader = csv::ReaderBuilder::new().from_path(file).map_err(unreadable)?;
        let header = reader.headers().map_err(unreadable)?.clone();
        Ok(Table { file, header, reader })
    }

    /// Where the columns of these names are.
    fn columns<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[(&'static str, usize); N], BadInput> {
        let mut columns = [("", 0); N];
        for (column, name) in columns.iter_mut().zip(names) {
            let place = self.header.iter().position(|title| title.trim() == name);
            let missing = || {
                let problem = "the first line must name this column";
                BadInput::new(problem).file(self.file).line(1).field(name)
            };
            *column = (name, place.ok_or_else(missing)?);
        }
        Ok(columns)
    }

    /// Every row, read by `read`.
    fn rows<T>(
        mut self,
        mut read: impl FnMut(&ListLine<'_>) -> Result<T, BadInput>,
    ) -> Result<Vec<T>, BadInput> {
        let mut rows = Vec::new();
        for record in self.reader.records() {
            let record = record.map_err(|error| {
                let line = error.position().map_or(1, csv::Position::line);
                BadInput::new(error.to_string()).file(self.file).line(line)
            })?;
            let number = record.position().map_or(1, csv::Position::line);
            rows.push(read(&ListLine { file: self.file, number, record: &record })?);
            if rows.len() > ROWS_MAX {
                let problem = format!("the list is too long: give at most {ROWS_MAX} rows");
                return Err(BadInput::new(problem).file(self.file).line(number));
            }
        }
        if rows.is_empty() {
            return Err(BadInput::new("the list is empty: give at least one row").file(self.file));
        }
        Ok(rows)
    }
}

/// One row of a file.
struct ListLine<'a> {
    file: &'a Path,
    number: u64,
    record: &'a StringRecord,
}

type Column = (&'static str, usize);

impl ListLine<'_> {
    fn bad(&self, column: Column, problem: impl Into<String>) -> BadInput {
        BadInput::new(problem).file(self.file).line(self.number).field(column.0)
    }

    fn text(&self, column: Column) -> &str {
        self.record.get(column.1).unwrap_or("").trim()
    }

    fn number(&self, column: Column, most: u32) -> Result<u32, BadInput> {
        let text = self.text(column);
        let shown: String = text.chars().take(40).collect();
        text.parse().ok().filter(|number| *number <= most).ok_or_else(|| {
            self.bad(column, format!("give a whole number from 0 to {most}, not `{shown}`"))
        })
    }

    fn name(&self, column: Column) -> Result<Name, BadInput> {
        Name::new(self.text(column)).map_err(|error| self.bad(column, error.to_string()))
    }

    /// A share of one GPU, or several whole ones.
    fn gpu(&self, count: Column, share: Column) -> Result<u32, BadInput> {
        let gpus = self.number(count, GPUS_PER_NODE_MAX as u32)?;
        let milli = self.number(share, WHOLE_GPU)?;
        match (gpus, milli) {
            (0, _) => Ok(0),
            (_, 0) => Err(self.bad(share, "give from 1 to 1000 where `num_gpu` is not 0")),
            (1, share) => Ok(share),
            (gpus, WHOLE_GPU) => Ok(gpus * WHOLE_GPU),
            _ => Err(self.bad(share, "give 1000 for several GPUs: only one GPU can be shared")),
        }
    }

    /// Models that will do, with a bar between them.
    fn models(&self, column: Column) -> Result<BTreeSet<Name>, BadInput> {
        let models = self.text(column).split('|').filter(|model| !model.is_empty());
        models
            .map(|model| Name::new(model).map_err(|error| self.bad(column, error.to_string())))
            .collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot write or read its file has failed
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn written(name: &str, text: &str) -> PathBuf {
        let file = std::env::temp_dir().join(format!("era-place-{}-{name}", std::process::id()));
        std::fs::write(&file, text).unwrap();
        file
    }

    fn refused<T: std::fmt::Debug>(result: Result<T, BadInput>, file: &Path) -> String {
        let text = result.unwrap_err().to_string();
        std::fs::remove_file(file).unwrap();
        text.replace(&file.display().to_string(), "F")
    }

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let file = written("order", "model,gpu,sn,memory_mib,cpu_milli,x\nT4,2,a,512,4000,?\n");
        let nodes = read_nodes(&file).unwrap();
        assert_eq!((nodes[0].gpus, nodes[0].cpu, nodes[0].memory), (2, 4000, 512));
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_pod_asks_for_a_share_or_for_whole_gpus_of_some_models() {
        let head = "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec";
        let file = written("pods", &format!("{head}\n1,2,1,460,\n1,2,4,1000,A|B\n1,2,0,0,\n"));
        let pods = read_pods(&file).unwrap();
        assert_eq!(pods.iter().map(|p| p.gpu).collect::<Vec<_>>(), [460, 4000, 0]);
        assert_eq!(pods[1].models.len(), 2);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_column() {
        let pods = "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n1,2,1,460,\n";
        for (text, error) in [
            (
                "x,1,1,1000,\n",
                "F, line 3, `cpu_milli`: give a whole number from 0 to 1000000000, not `x`",
            ),
            (
                "1,1,2,500,\n",
                "F, line 3, `gpu_milli`: give 1000 for several GPUs: only one GPU can be shared",
            ),
            ("1,1,1,0,\n", "F, line 3, `gpu_milli`: give from 1 to 1000 where `num_gpu` is not 0"),
        ] {
            let file = written("bad", &format!("{pods}{text}"));
            assert_eq!(refused(read_pods(&file), &file), error);
        }
        let file = written("head", "sn,cpu_milli\na,1\n");
        let error = refused(read_nodes(&file), &file);
        assert_eq!(error, "F, line 1, `memory_mib`: the first line must name this column");
        let file = written("twice", "sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,T4\na,1,1,1,T4\n");
        let error = refused(read_nodes(&file), &file);
        assert_eq!(error, "F, line 3, `sn`: another node has this name already");
        let file = written("short", &format!("{pods}1,1\n"));
        assert!(refused(read_pods(&file), &file).starts_with("F, line 3: "));
    }
}
