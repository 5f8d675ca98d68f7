//! A cluster from a table: our own columns, those of Alibaba's openb, or the sizes of virtual
//! clusters in nodes.
//!
//! What a node is good for is not known here.

use std::io::BufRead;
use std::path::Path;

use era_core::resources::GPUS_PER_NODE_MAX;

use super::setup::{MachineSetup, Machines};
use crate::BadInput;
use crate::trace::source;
use crate::trace::table::{Column, Row, Table};

/// No table makes more nodes than this.
const NODES_MAX: usize = 100_000;
/// Where a table counts nodes, each has so many GPUs.
const GPUS_PER_COUNTED_NODE: u32 = 8;
/// More than any job asks for: where a table is silent, nothing is limited.
const UNLIMITED: u32 = 1 << 30;

/// The nodes of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterFile {
    /// What each has.
    pub machines: Vec<MachineSetup>,
    /// What the file calls each.
    pub names: Vec<Box<str>>,
    /// Whether the file says how many processors and how much memory nodes have.
    pub knows_cpu_and_memory: bool,
}

impl ClusterFile {
    /// Its nodes as a cluster.
    pub fn machines(&self) -> Machines {
        Machines::Nodes(self.machines.clone())
    }
}

/// Reads a table of nodes: `name,gpus,cpus,mem_gb,model`, `sn,cpu_milli,memory_mib,gpu,model` or
/// `vc,node num`, compressed or not. Only the first column and the GPUs must be there.
pub fn read_cluster(path: &Path) -> Result<ClusterFile, BadInput> {
    let cluster = source::open(path).and_then(|source| {
        if source.start.is_empty() {
            return Err(BadInput::new("the file is empty"));
        }
        read(source.all)
    });
    cluster.map_err(|error| error.file(path))
}

fn read(source: impl BufRead) -> Result<ClusterFile, BadInput> {
    let mut table = Table::new(source)?;
    let (name, count) = (table.column(&["name", "sn", "vc"]), table.column(&["node num"]));
    let Some(name) = name else {
        let known = "name,gpus,cpus,mem_gb,model or sn,cpu_milli,memory_mib,gpu,model or \
                     vc,node num";
        return Err(BadInput::new(format!("this is no table of nodes: give {known}")).line(1));
    };
    let columns = match count {
        Some(count) => Columns::Counted { count },
        None => Columns::Listed {
            gpus: table.required(&["gpus", "gpu"])?,
            cpus: table.column(&["cpus"]),
            cpu_milli: table.column(&["cpu_milli"]),
            memory_gib: table.column(&["mem_gb"]),
            memory_mib: table.column(&["memory_mib"]),
            model: table.column(&["model"]),
        },
    };
    let mut cluster = ClusterFile {
        machines: Vec::new(),
        names: Vec::new(),
        knows_cpu_and_memory: columns.know_cpu_and_memory(),
    };
    while let Some(row) = table.next()? {
        let label = row.filled(&name)?;
        let (machine, count) = columns.machine(&row)?;
        if cluster.machines.len() + count > NODES_MAX {
            return Err(BadInput::new(format!("more than {NODES_MAX} nodes")).line(row.line));
        }
        for number in 0..count {
            let counted = matches!(columns, Columns::Counted { .. });
            let label = if counted { format!("{label}/{number}") } else { label.to_owned() };
            cluster.names.push(label.into());
            cluster.machines.push(machine.clone());
        }
    }
    if cluster.machines.is_empty() {
        return Err(BadInput::new("there is no node in it"));
    }
    Ok(cluster)
}

enum Columns {
    Counted {
        count: Column,
    },
    Listed {
        gpus: Column,
        cpus: Option<Column>,
        cpu_milli: Option<Column>,
        memory_gib: Option<Column>,
        memory_mib: Option<Column>,
        model: Option<Column>,
    },
}

impl Columns {
    fn know_cpu_and_memory(&self) -> bool {
        match self {
            Columns::Counted { .. } => false,
            Columns::Listed { cpus, cpu_milli, memory_gib, memory_mib, .. } => {
                (cpus.is_some() || cpu_milli.is_some())
                    && (memory_gib.is_some() || memory_mib.is_some())
            }
        }
    }

    /// What a row says, and how many nodes of it there are.
    fn machine(&self, row: &Row<'_>) -> Result<(MachineSetup, usize), BadInput> {
        match self {
            Columns::Counted { count } => {
                let machine = MachineSetup {
                    gpus: GPUS_PER_COUNTED_NODE,
                    cpu_milli: UNLIMITED,
                    memory_mib: UNLIMITED,
                    model: None,
                };
                Ok((machine, whole(row, count, NODES_MAX)?))
            }
            Columns::Listed { gpus, cpus, cpu_milli, memory_gib, memory_mib, model } => {
                let cpu = match cpu_milli {
                    Some(column) => capped(row, column, row.decimal(Some(column), 0)?)?,
                    None => match cpus {
                        Some(column) => capped(row, column, row.decimal(Some(column), 3)?)?,
                        None => UNLIMITED,
                    },
                };
                let memory = match memory_mib {
                    Some(column) => capped(row, column, row.decimal(Some(column), 0)?)?,
                    None => match memory_gib {
                        Some(column) if row.text(Some(column))?.is_empty() => UNLIMITED,
                        Some(column) => {
                            let mib = i64::from(row.mib_of_gib(Some(column))?);
                            capped(row, column, Some(mib))?
                        }
                        None => UNLIMITED,
                    },
                };
                let named = row.text(model.as_ref())?.trim();
                if let (Some(column), Err(error)) = (model, era_core::units::Name::new(named))
                    && !named.is_empty()
                {
                    return Err(row.bad(column, error.to_string()));
                }
                let machine = MachineSetup {
                    gpus: whole(row, gpus, GPUS_PER_NODE_MAX)? as u32,
                    cpu_milli: cpu,
                    memory_mib: memory,
                    model: (!named.is_empty()).then(|| named.to_owned()),
                };
                Ok((machine, 1))
            }
        }
    }
}

/// A count that a row must have.
fn whole(row: &Row<'_>, column: &Column, most: usize) -> Result<usize, BadInput> {
    let text = row.filled(column)?;
    let count = text.trim().parse::<usize>().ok().filter(|count| *count <= most);
    count.ok_or_else(|| {
        row.bad(column, format!("give a whole number from 0 to {most}, not `{text}`"))
    })
}

/// An amount of processors or memory: what is not said is not limited.
fn capped(row: &Row<'_>, column: &Column, value: Option<i64>) -> Result<u32, BadInput> {
    let Some(value) = value else { return Ok(UNLIMITED) };
    let fits = u32::try_from(value).ok().filter(|value| *value <= UNLIMITED);
    fits.ok_or_else(|| row.bad(column, format!("give 0 to {UNLIMITED}, not {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<ClusterFile, String> {
        read(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn our_own_columns_are_read() {
        let cluster =
            parsed("name,gpus,cpus,mem_gb,model\na,8,64,512,h100\nb,2,1.5,,\n").expect("nodes");
        let first = MachineSetup {
            gpus: 8,
            cpu_milli: 64_000,
            memory_mib: 524_288,
            model: Some("h100".into()),
        };
        let second = MachineSetup { gpus: 2, cpu_milli: 1_500, memory_mib: UNLIMITED, model: None };
        assert_eq!(cluster.machines, [first, second]);
        assert_eq!(cluster.names, ["a".into(), "b".into()]);
        assert!(cluster.knows_cpu_and_memory);
    }

    #[test]
    fn openb_columns_are_read() {
        let text = "sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\n";
        let machine = parsed(text).expect("nodes").machines.remove(0);
        assert_eq!((machine.gpus, machine.cpu_milli, machine.memory_mib), (2, 64_000, 262_144));
        assert_eq!(machine.model.as_deref(), Some("P100"));
    }

    #[test]
    fn virtual_clusters_are_counted_in_nodes_of_eight() {
        let cluster = parsed("vc,node num\na,2\nb,1\n").expect("nodes");
        assert_eq!(cluster.machines().gpus(), 24);
        assert_eq!(cluster.names, ["a/0".into(), "a/1".into(), "b/0".into()]);
        assert!(!cluster.knows_cpu_and_memory);
    }

    #[test]
    fn a_bad_line_is_named_with_its_field() {
        for (text, expected) in [
            ("name,gpus\na,8\nb,x\n", "line 3, `gpus`: give a whole number from 0 to 32"),
            ("name,gpus\na,33\n", "line 2, `gpus`: give a whole number from 0 to 32, not `33`"),
            ("name,gpus\na,-1\n", "line 2, `gpus`"),
            ("name,gpus,cpus\na,1,many\n", "line 2, `cpus`"),
            ("name,gpus,cpus\na,1,-4\n", "line 2, `cpus`"),
            ("name,gpus,model\na,1,a b\n", "line 2, `model`"),
            ("name,gpus\na\n", "line 2: the header has 2 columns, this line 1"),
            ("name,cpus\na,1\n", "line 1, `gpus`: the header has no such column"),
            ("vc,node num\na,-3\n", "line 2, `node num`"),
            ("vc,node num\na,200000\n", "line 2, `node num`"),
            ("x,y\n1,2\n", "line 1: this is no table of nodes"),
            ("name,gpus\n", "there is no node in it"),
        ] {
            let problem = parsed(text).expect_err(text);
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
