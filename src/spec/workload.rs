//! What is known of each workload without running it: its name, its tables, whether it writes.

use std::fmt;

use super::{Dataset, Kind, Name, Schema, Workload};

impl Kind {
    /// All workloads, in the order of their documentation.
    pub const ALL: [Self; 14] = [
        Self::YcsbA,
        Self::YcsbB,
        Self::YcsbC,
        Self::YcsbD,
        Self::YcsbE,
        Self::YcsbF,
        Self::OltpPointSelect,
        Self::OltpReadOnly,
        Self::OltpReadWrite,
        Self::OltpWriteOnly,
        Self::OltpUpdateIndex,
        Self::OltpUpdateNonIndex,
        Self::OltpInsert,
        Self::OltpDelete,
    ];

    /// The name as written in an experiment.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::YcsbA => "ycsb_a",
            Self::YcsbB => "ycsb_b",
            Self::YcsbC => "ycsb_c",
            Self::YcsbD => "ycsb_d",
            Self::YcsbE => "ycsb_e",
            Self::YcsbF => "ycsb_f",
            Self::OltpPointSelect => "oltp_point_select",
            Self::OltpReadOnly => "oltp_read_only",
            Self::OltpReadWrite => "oltp_read_write",
            Self::OltpWriteOnly => "oltp_write_only",
            Self::OltpUpdateIndex => "oltp_update_index",
            Self::OltpUpdateNonIndex => "oltp_update_non_index",
            Self::OltpInsert => "oltp_insert",
            Self::OltpDelete => "oltp_delete",
        }
    }

    /// The tables that it works on.
    #[must_use]
    pub const fn schema(self) -> Schema {
        match self {
            Self::YcsbA | Self::YcsbB | Self::YcsbC | Self::YcsbD | Self::YcsbE | Self::YcsbF => {
                Schema::Ycsb
            }
            Self::OltpPointSelect
            | Self::OltpReadOnly
            | Self::OltpReadWrite
            | Self::OltpWriteOnly
            | Self::OltpUpdateIndex
            | Self::OltpUpdateNonIndex
            | Self::OltpInsert
            | Self::OltpDelete => Schema::Sysbench,
        }
    }

    /// Whether it changes the data.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(
            self,
            Self::YcsbC | Self::OltpPointSelect | Self::OltpReadOnly
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Workload {
    /// What it is called in results: its own name, else that of what is run.
    #[must_use]
    pub fn label(&self) -> &str {
        self.name
            .as_ref()
            .map_or(self.kind().as_str(), Name::as_str)
    }

    /// What is run: `workload`, or `script` of sysbench. A checked workload has one of them.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let written = self.workload.or(self.script);
        written.unwrap_or(Kind::OltpPointSelect)
    }
}

impl Dataset {
    /// Whose tables they are: what is written, else sysbench's, which is the only schema that other drivers than the native
    /// one have.
    #[must_use]
    pub fn schema(&self) -> Schema {
        self.schema.unwrap_or(Schema::Sysbench)
    }

    /// ycsb: rows, fields of a row, bytes of a field, with the defaults filled in.
    #[must_use]
    pub fn ycsb_shape(&self) -> (u64, u32, u32) {
        (
            self.records.unwrap_or(1000),
            self.fields.unwrap_or(10),
            self.field_length.unwrap_or(100),
        )
    }

    /// sysbench: tables and rows of each, with the defaults filled in.
    #[must_use]
    pub fn sysbench_shape(&self) -> (u32, u64) {
        (self.tables.unwrap_or(1), self.table_size.unwrap_or(10_000))
    }

    /// Rows in all.
    #[must_use]
    pub fn rows(&self) -> u64 {
        match self.schema() {
            Schema::Ycsb => self.ycsb_shape().0,
            Schema::Sysbench => u64::from(self.sysbench_shape().0) * self.sysbench_shape().1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_file_format() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
