//! Paths between the processes of an evaluation: as bytes, since the name of a file need not be UTF-8.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

/// A path that there need not be.
pub(crate) mod optional {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(of: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        of.as_deref().map(bytes).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Vec<u8>>::deserialize(from)?.map(path))
    }
}

/// Several paths.
pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(of: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(of.iter().map(|path| bytes(path)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Vec<u8>>::deserialize(from)?.into_iter().map(path).collect())
    }
}
