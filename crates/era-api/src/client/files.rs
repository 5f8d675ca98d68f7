//! Data sets, contents and trees: one method for each operation. Many files at once are
//! [`super::transfer`]'s.

use std::io::Read;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::SendBody;
use ureq::http::{Method, Request, header};

use super::path::{encode, query};
use super::{ANSWER_BYTES_MAX, Client, ClientError};
use crate::data::{
    BlobList, DataSetEdit, DataSetFilter, DataSetView, FileEntry, FileFilter, FilesEdit, JobFolder,
    NewDataSet, NewTree, TreeMade,
};
use crate::{PREFIX, Page};

/// How much of a content the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadState {
    /// All of it.
    Whole,
    /// So many bytes of our own upload.
    Part(u64),
}

impl Client {
    /// Which of these contents the server lacks.
    pub fn missing_blobs(&self, hashes: Vec<String>) -> Result<Vec<String>, ClientError> {
        let list: BlobList = self.ask_at_length("/blobs/missing", &BlobList { hashes })?;
        Ok(list.hashes)
    }

    /// How much of a content is there.
    pub fn blob_state(&self, hash: &str) -> Result<UploadState, ClientError> {
        let path = format!("/blobs/{}", encode(hash));
        let request = self.request(Method::HEAD, &path);
        let request = request.body(()).map_err(|_| self.bad_address(&path))?;
        let answer = self.agent()?.run(request).map_err(|e| ClientError::of(self.url(), e))?;
        let answer = self.judge(&path, answer)?;
        let told = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        if told("upload-complete") == Some("?1") {
            return Ok(UploadState::Whole);
        }
        Ok(UploadState::Part(told("upload-offset").and_then(|text| text.parse().ok()).unwrap_or(0)))
    }

    /// Sends the rest of a content, which has `count` bytes, from an offset on. The server
    /// verifies the whole.
    pub fn put_blob(
        &self,
        hash: &str,
        offset: u64,
        count: u64,
        rest: &mut dyn Read,
    ) -> Result<(), ClientError> {
        let path = format!("/blobs/{}?offset={offset}", encode(hash));
        let request = self
            .request(Method::PUT, &path)
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header(header::CONTENT_LENGTH, count);
        let mut rest = Exactly { rest, left: count };
        let body = SendBody::from_reader(&mut rest);
        let request = request.body(body).map_err(|_| self.bad_address(&path))?;
        let answer = self.agent()?.run(request).map_err(|e| ClientError::of(self.url(), e))?;
        self.judge(&path, answer).map(drop)
    }

    /// Puts a tree whose contents are there.
    pub fn put_tree(&self, tree: &NewTree) -> Result<TreeMade, ClientError> {
        self.ask_at_length("/trees", tree)
    }

    pub fn tree(&self, hash: &str) -> Result<NewTree, ClientError> {
        self.get(&format!("/trees/{}", encode(hash)))
    }

    /// Data sets that we may see.
    pub fn data_sets(&self, filter: &DataSetFilter) -> Result<Page<DataSetView>, ClientError> {
        self.get(&format!("/data{}", query(filter)))
    }

    pub fn data_set(&self, owner: &str, name: &str) -> Result<DataSetView, ClientError> {
        self.get(&data_path(owner, name))
    }

    /// Makes an empty data set.
    pub fn make_data_set(&self, wanted: &NewDataSet) -> Result<DataSetView, ClientError> {
        self.post("/data", wanted)
    }

    /// Changes who may see a data set.
    pub fn share_data_set(
        &self,
        owner: &str,
        name: &str,
        edit: &DataSetEdit,
    ) -> Result<DataSetView, ClientError> {
        self.patch(&data_path(owner, name), edit)
    }

    pub fn remove_data_set(&self, owner: &str, name: &str) -> Result<(), ClientError> {
        self.delete(&data_path(owner, name))
    }

    /// Files of a data set.
    pub fn data_files(
        &self,
        owner: &str,
        name: &str,
        filter: &FileFilter,
    ) -> Result<Page<FileEntry>, ClientError> {
        self.get(&format!("{}/files{}", data_path(owner, name), query(filter)))
    }

    /// Changes the files of a data set, all of it or nothing.
    pub fn edit_data_set(
        &self,
        owner: &str,
        name: &str,
        edit: &FilesEdit,
    ) -> Result<DataSetView, ClientError> {
        self.patch(&format!("{}/files", data_path(owner, name)), edit)
    }

    /// A file at a path from an offset on; what comes first says where it begins.
    pub fn read_from(
        &self,
        path: &str,
        offset: u64,
    ) -> Result<(u64, impl Read + use<>), ClientError> {
        let mut request = self.request(Method::GET, path);
        if offset > 0 {
            request = request.header(header::RANGE, format!("bytes={offset}-"));
        }
        let request = request.body(()).map_err(|_| self.bad_address(path))?;
        let answer = self.agent()?.run(request).map_err(|e| ClientError::of(self.url(), e))?;
        let answer = self.judge(path, answer)?;
        // A server that does not send a part sends the whole.
        let begins = if answer.status().as_u16() == 206 { offset } else { 0 };
        Ok((begins, answer.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    /// Posts a list that may be long, without a key: the same twice is the same, and a server
    /// keeps no long answers by key.
    fn ask_at_length<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let not_understood = |why: String| {
            let (url, path) = (self.url().to_owned(), path.to_owned());
            ClientError::NotUnderstood { url, path, why }
        };
        let body = serde_json::to_vec(body).map_err(|error| not_understood(error.to_string()))?;
        let request = self.request(Method::POST, path);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.body(body.as_slice()).map_err(|_| self.bad_address(path))?;
        let answer = self.agent()?.run(request).map_err(|e| ClientError::of(self.url(), e))?;
        let mut answer = self.judge(path, answer)?.into_body();
        let bytes = answer.with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let bytes = bytes.map_err(|e| ClientError::of(self.url(), e))?;
        serde_json::from_slice(&bytes).map_err(|error| not_understood(error.to_string()))
    }

    pub(super) fn request(&self, method: Method, path: &str) -> ureq::http::request::Builder {
        let request =
            Request::builder().method(method).uri(format!("{}{PREFIX}{path}", self.url()));
        match self.token() {
            Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }

    pub(super) fn bad_address(&self, path: &str) -> ClientError {
        ClientError::BadAddress { url: format!("{}{PREFIX}{path}", self.url()) }
    }
}

/// As many bytes as were announced: a file that became shorter meanwhile ends the request, which
/// would wait for the rest for ever; one that became longer is cut there, and its hash will tell.
struct Exactly<'a> {
    rest: &'a mut dyn Read,
    left: u64,
}

impl Read for Exactly<'_> {
    fn read(&mut self, piece: &mut [u8]) -> std::io::Result<usize> {
        let most = piece.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.rest.read(&mut piece[..most])?;
        if count == 0 && most > 0 {
            let why = "the file became shorter while it was sent";
            return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, why));
        }
        self.left -= count as u64;
        Ok(count)
    }
}

fn data_path(owner: &str, name: &str) -> String {
    format!("/data/{}/{}", encode(owner), encode(name))
}

/// Where a file of a data set is read.
pub(super) fn data_file_path(owner: &str, name: &str, path: &str) -> String {
    format!("{}/files/{}", data_path(owner, name), encode_path(path))
}

/// Where a file that is kept of a job is read.
pub(super) fn kept_path(job: u64, kept: JobFolder, path: &str) -> String {
    format!("/jobs/{job}/{kept}/{}", encode_path(path))
}

fn encode_path(path: &str) -> String {
    path.split('/').map(encode).collect::<Vec<_>>().join("/")
}
