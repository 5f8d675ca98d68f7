//! Each way in which a file can be wrong, and what is said then: file, line, field, remedy.

use super::{Folder, gzip, read, wrong};

const HEADER: &str = "job_id,submit_s,duration_s,gpus,status,stated_s,deadline_s,value,mem_gb\n";

#[track_caller]
fn check(line: &str, expected: &str) {
    let content = format!("{HEADER}a,5,1,1,,,,,\n{line}\n");
    assert_eq!(wrong("jobs.csv", content), format!("jobs.csv, line 3{expected}"));
}

#[test]
fn a_bad_cell_is_named_by_file_line_and_column() {
    check("b,x,1,1,,,,,", ", `submit_s`: give a number, not `x`");
    check("b,-5,1,1,,,,,", ", `submit_s`: -5 is negative");
    check("b,,1,1,,,,,", ", `submit_s`: it is empty");
    check("b,6,-1,1,,,,,", ", `duration_s`: -1 is negative");
    check("b,6,1e9,1,,,,,", ", `duration_s`: give a number, not `1e9`");
    check("b,6,1,-2,,,,,", ", `gpus`: -2000 is negative");
    check("b,6,1,many,,,,,", ", `gpus`: give a number, not `many`");
    check(
        "b,6,1,1,lost,,,,",
        ", `status`: give completed, failed or cancelled, or nothing where it is unknown",
    );
    check("b,6,1,1,,0,,,", ", `stated_s`: give at least 1, or nothing where it is unknown");
    check("b,6,1,1,,,5,,", ", `deadline_s`: 5 is before the submission at 6");
    check("b,6,1,1,,,,-0.5,", ", `value`: -500000 is negative");
    check("b,6,1,1,,,,,lots", ", `mem_gb`: give a number of GiB, not `lots`");
    check(",6,1,1,,,,,", ", `job_id`: it is empty");
}

#[test]
fn numbers_out_of_range_are_refused() {
    let range = "give 0 to 10000000000";
    check("b,99999999999,1,1,,,,,", &format!(", `submit_s`: 99999999999 is out of range: {range}"));
    check("b,6,1,5000000,,,,,", ", `gpus`: 5000000000 is out of range: give 0 to 4294967295");
    let huge = "9".repeat(60);
    let shown = "9".repeat(40);
    check(&format!("b,{huge},1,1,,,,,"), &format!(", `submit_s`: give a number, not `{shown}…`"));
}

#[test]
fn a_line_with_too_few_or_too_many_cells_is_refused() {
    check("b,6,1", ": the header has 9 columns, this line 3");
    check("b,6,1,1,,,,,,", ": the header has 9 columns, this line 10");
}

#[test]
fn unsorted_submissions_are_refused_with_the_remedy() {
    check("b,4,1,1,,,,,", ", `submit_s`: 4 comes before 5 of the job above: sort by submit_s");
    let swf = "1 9 0 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1\n2 8 0 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1\n";
    assert_eq!(
        wrong("a.swf", swf),
        "a.swf, line 2, `submit time`: 8 comes before 9 of the job above: sort by submit time"
    );
}

#[test]
fn the_line_is_right_after_blank_lines_and_windows_line_ends() {
    let content = "job_id,submit_s,duration_s,gpus\r\na,0,1,1\r\n\r\nb,x,1,1\r\n";
    assert_eq!(wrong("a.csv", content), "a.csv, line 4, `submit_s`: give a number, not `x`");
}

#[test]
fn files_without_jobs_are_refused() {
    assert_eq!(wrong("a.csv", ""), "a.csv: the file is empty");
    assert_eq!(wrong("a.csv.gz", gzip("")), "a.csv.gz: the file is empty");
    assert_eq!(wrong("a.csv", "\n\n"), "a.csv: the file is empty");
    assert_eq!(wrong("a.csv", HEADER), "a.csv: there is only a header, no job");
    assert_eq!(wrong("a.swf", "; MaxProcs: 4\n"), "a.swf: there is no job in it");
    assert_eq!(wrong("a.json", "[]"), "a.json: there is no job in it");
    let never = format!("{HEADER}a,5,0,1,,,,,\n");
    assert_eq!(wrong("a.csv", never), "a.csv: none of its 1 jobs ever ran");
}

#[test]
fn headers_that_lack_a_column_or_name_one_twice_are_refused() {
    assert_eq!(
        wrong("a.csv", "job_id,submit_s,gpus\na,1,1\n"),
        "a.csv, line 1, `duration_s`: the header has no such column: it has job_id,submit_s,gpus"
    );
    assert_eq!(
        wrong("a.csv", "job_id,submit_s,submit_s,duration_s,gpus\na,1,1,1,1\n"),
        "a.csv, line 1, `submit_s`: two columns have this name: keep one"
    );
}

#[test]
fn truncated_and_damaged_gzip_says_so() {
    let rows: String =
        (0..2000).map(|n| format!("j{n},{n},{},1,,,,,\n", n * 7919 % 997 + 1)).collect();
    let whole = gzip(format!("{HEADER}{rows}"));
    for cut in [whole.len() - 1, whole.len() / 2, 12] {
        let said = wrong("a.csv.gz", &whole[..cut]);
        assert!(said.contains("the gzip stream is truncated"), "{cut}: {said}");
    }
    let mut damaged = whole.clone();
    let end = damaged.len();
    damaged[end - 6] ^= 1;
    let said = wrong("a.csv.gz", damaged);
    assert!(said.contains("the gzip stream is damaged"), "{said}");
}

#[test]
fn what_is_no_trace_is_not_recognised() {
    let said = wrong("a.csv", "one,two\n1,2\n");
    assert_eq!(
        said,
        "a.csv, line 1: the format is not recognised from `one,two`; the formats are era, swf, philly, helios, alibaba, chronus"
    );
    let folder = Folder::new();
    let missing = read(&folder.path().join("none.csv"), None).expect_err("there is no such file");
    assert!(missing.to_string().contains("none.csv: cannot be opened"), "{missing}");
    let folder = read(folder.path(), None).expect_err("a folder is no file");
    assert!(folder.to_string().contains("cannot be"), "{folder}");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut content = HEADER.as_bytes().to_vec();
    content.extend_from_slice(b"\xff\xfe,5,1,1,,,,,\n");
    assert_eq!(wrong("a.csv", content), "a.csv, line 2, `job_id`: the text is not UTF-8");
}

#[test]
fn bad_swf_is_named_by_line_and_field() {
    let line = |fields: &str| format!("; comment\n{fields}\n");
    let check = |fields: &str, expected: &str| {
        assert_eq!(wrong("a.swf", line(fields)), format!("a.swf, line 2{expected}"));
    };
    check("1 2 3", ": an SWF line has 18 fields, this one 3");
    check("1 x 0 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1", ", `submit time`: give a number, not `x`");
    check("1 -5 0 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1", ", `submit time`: -5 is negative");
    check("1 0 0 -7 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1", ", `run time`: -7 is negative");
    check(
        "1 0 0 1 1 -1 -1 9999999 1 -1 1 1 1 -1 -1 -1 -1 -1",
        ", `requested processors`: 9999999 is out of range: give 0 to 4294967",
    );
}

#[test]
fn bad_json_is_named_by_line_and_field() {
    let job = |submitted: &str, rest: &str| {
        format!("[\n{{\"jobid\": \"a\", \"submitted_time\": {submitted}{rest}}}\n]")
    };
    assert_eq!(
        wrong("log", job("\"noon\"", ", \"attempts\": []")),
        "log, line 2, `submitted_time`: give a time like 2017-10-09 07:03:19, not `noon`"
    );
    assert_eq!(wrong("log", job("null", "")), "log, line 2, `attempts`: missing field `attempts`");
    let backwards = ", \"attempts\": [{\"start_time\": \"2017-10-09 07:03:19\", \"end_time\": \"2017-10-09 07:03:18\", \"detail\": []}]";
    assert_eq!(
        wrong("log", job("\"2017-10-09 07:03:19\"", backwards)),
        "log, line 2, `end_time`: it is before the start"
    );
    assert_eq!(
        wrong("log", "[\n{\"jobid\": "),
        "log, line 2: the JSON ends before its end; fetch the file again"
    );
    assert!(
        wrong("log", "{}").starts_with("log, line 1: invalid type: map, expected an array of jobs")
    );
    let cut = &gzip(job("null", ", \"attempts\": []").repeat(50))[..40];
    assert!(wrong("log.gz", cut).contains("the gzip stream is truncated"));
}

#[test]
fn bad_cells_of_the_other_tables_are_named_too() {
    assert_eq!(
        wrong(
            "cluster_log.csv",
            "job_id,gpu_num,submit_time,duration\n1,1,2020-02-30 00:00:00,5\n"
        ),
        "cluster_log.csv, line 2, `submit_time`: give a time like 2017-10-09 07:03:19, not `2020-02-30 00:00:00`"
    );
    assert_eq!(
        wrong(
            "cluster_log.csv",
            "job_id,gpu_num,submit_time,duration\n1,1,2020-02-03 00:00:00,-5\n"
        ),
        "cluster_log.csv, line 2, `duration`: -5 is negative"
    );
    assert_eq!(
        wrong("c.csv", "job_id,num_gpu,submit_time,duration,expect_time_list\n1,1,3,4,soon\n"),
        "c.csv, line 2, `expect_time_list`: give a number, not `soon`"
    );
    assert_eq!(
        wrong("pai_task_table.csv", "j1,ps,1.0,Terminated,10.0,9.0,600.0,1.0,50.0,\n"),
        "pai_task_table.csv, line 1, `end_time`: 9 is before the start at 10"
    );
    assert_eq!(
        wrong("pai_job_table.csv", "j1,i1,ada,Terminated,890.0,1200.0\n"),
        "pai_job_table.csv: this table holds no sizes: put pai_task_table.csv beside it"
    );
    let folder = Folder::new();
    folder.put("pai_job_table.csv", "j1,i1,ada,Terminated,x,1200.0\n");
    let tasks = folder.put("pai_task_table.csv", "j1,ps,1.0,Terminated,1.0,9.0,600.0,1.0,50.0,\n");
    let error = read(&tasks, None).expect_err("the other table is bad");
    assert!(error.to_string().contains("pai_job_table.csv, line 1, `start_time`"), "{error}");
}
