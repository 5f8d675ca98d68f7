//! Each format, on a sample.

use super::super::{Status, Trace, TraceJob};
use super::{Folder, good, gzip, read};
use crate::trace::TraceFormat;

const OURS: &str = "\
job_id,submit_s,duration_s,gpus,cpus,mem_gb,user,group,status
a,0,60,1,,,ada,vision,COMPLETED
b,5,120,0.5,4,1.5,bob,vision,FAILED
c,5,7,8,,,,,
";

fn ids(trace: &Trace) -> Vec<&str> {
    trace.jobs.iter().map(|job| &*job.id).collect()
}

#[test]
fn our_table_is_read_with_what_it_leaves_open() {
    let trace = good("jobs.csv", OURS);
    assert_eq!(ids(&trace), ["a", "b", "c"]);
    let expected = TraceJob {
        id: "b".into(),
        submit_s: 5,
        duration_s: 120,
        gpu_milli: 500,
        cpu_milli: 4000,
        memory_mib: 1536,
        user: Some(1),
        group: Some(0),
        status: Status::Failed,
        ..TraceJob::default()
    };
    assert_eq!(trace.jobs[1], expected);
    let open = &trace.jobs[2];
    assert_eq!((open.user, open.group, open.status), (None, None, Status::Unknown));
    assert_eq!((open.stated_s, open.deadline_s, open.value), (None, None, None));
    assert_eq!((trace.users.name(0), trace.users.name(1)), (Some("ada"), Some("bob")));
    assert_eq!(trace.skipped, 0);
}

#[test]
fn columns_come_in_any_order_and_further_ones_are_not_looked_at() {
    let trace = good(
        "jobs.csv",
        "value,gpus,note,deadline_s,submit_s,job_id,stated_s,duration_s\n\
         2.5,1,\"a, b\",100,10,x,60,30\n",
    );
    let job = &trace.jobs[0];
    assert_eq!((job.submit_s, job.duration_s, job.gpu_milli), (10, 30, 1000));
    assert_eq!((job.stated_s, job.deadline_s, job.value), (Some(60), Some(100), Some(2_500_000)));
}

#[test]
fn other_names_of_columns_are_understood() {
    let trace = good("jobs.csv", "job,submit_s,duration_s,procs,est_s,user\n1,0,97,56,210,9\n");
    let job = &trace.jobs[0];
    assert_eq!((&*job.id, job.gpu_milli, job.stated_s), ("1", 56_000, Some(210)));
    let trace = good(
        "jobs.csv",
        "job,src_job_id,submit_s,duration_s,gpus,group,est_exact_s,est_bucket_s\n\
         1,p5,0,167,1,0e4a51,167,600\n",
    );
    assert_eq!((&*trace.jobs[0].id, trace.jobs[0].stated_s), ("1", Some(600)));
}

#[test]
fn line_ends_of_windows_and_a_byte_order_mark_change_nothing() {
    let windows = format!("\u{feff}{}", OURS.replace('\n', "\r\n"));
    assert_eq!(good("jobs.csv", windows), good("jobs.csv", OURS));
}

#[test]
fn compressed_files_are_read_whatever_they_are_called() {
    let plain = good("jobs.csv", OURS);
    assert_eq!(good("jobs.csv.gz", gzip(OURS)), plain);
    assert_eq!(good("jobs.csv", gzip(OURS)), plain);
    let (head, tail) = OURS.split_at(100);
    let members = [gzip(head), gzip(tail)].concat();
    assert_eq!(good("jobs.csv.gz", members), plain, "several gzip members are one file");
}

#[test]
fn a_job_that_never_ran_is_skipped_and_counted() {
    let trace =
        good("jobs.csv", "job_id,submit_s,duration_s,gpus\na,0,,1\nb,1,0,1\nc,2,9,1\nd,3,,1\n");
    assert_eq!(ids(&trace), ["c"]);
    assert_eq!(trace.skipped, 3);
    assert_eq!(trace.skipped_because["how long it ran is not known"], 2);
    assert_eq!(trace.skipped_because["it ran for less than a second"], 1);
}

const SWF: &str = "\
; Version: 2.2
; MaxProcs: 100

  1 0 3 100 4 -1 -1 8 600 1024 1 3 1 -1 1 -1 -1 -1
  2 5 -1 50 4 -1 -1 -1 -1 -1 0 -1 -1 -1 -1 -1 -1 -1
  3 6 -1 -1 4 -1 -1 4 60 -1 5 3 1 -1 -1 -1 -1 -1
  4 7 -1 0 4 -1 -1 4 60 -1 5 3 1 -1 -1 -1 -1 -1
  5 8 -1 10 -1 -1 -1 -1 60 -1 1 3 1 -1 -1 -1 -1 -1
  6 9 -1 10 1 -1 -1 1 60 -1 2 3 1 -1 -1 -1 -1 -1
";

#[test]
fn swf_gives_processors_and_the_requested_time() {
    let trace = good("log.swf", SWF);
    assert_eq!(ids(&trace), ["1", "2"]);
    let expected = TraceJob {
        id: "1".into(),
        submit_s: 0,
        duration_s: 100,
        stated_s: Some(600),
        gpu_milli: 8000,
        memory_mib: 8,
        user: Some(0),
        group: Some(0),
        status: Status::Completed,
        ..TraceJob::default()
    };
    assert_eq!(trace.jobs[0], expected);
    let second = &trace.jobs[1];
    assert_eq!((second.gpu_milli, second.stated_s, second.user), (4000, None, None));
    assert_eq!(second.status, Status::Failed);
    assert_eq!(trace.skipped, 4);
    assert_eq!(trace.skipped_because.len(), 4, "{:?}", trace.skipped_because);
    // Without comments and without its ending it is still known by its eighteen numbers.
    let bare: String = SWF.lines().skip(3).map(|line| format!("{line}\n")).collect();
    assert_eq!(good("log", bare), trace);
}

#[test]
fn philly_sums_attempts_and_sorts_by_submission() {
    let trace = good(
        "cluster_job_log",
        r#"[
  {"status": "Pass", "vc": "ee9e8c", "jobid": "application_2", "user": "ce2f4c",
   "submitted_time": "2017-10-09 07:03:19",
   "attempts": [
     {"start_time": "2017-10-09 07:04:00", "end_time": "2017-10-09 07:05:00",
      "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]},
     {"start_time": "2017-10-09 08:00:00", "end_time": "2017-10-10 08:00:00",
      "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]},
     {"start_time": "2017-10-10 09:00:00", "end_time": null, "detail": []}]},
  {"status": "Killed", "vc": "ee9e8c", "jobid": "application_1", "user": "d4",
   "submitted_time": "2017-10-09 07:03:09",
   "attempts": [{"start_time": "2017-10-09 07:03:10", "end_time": "2017-10-09 07:03:20",
                 "detail": [{"ip": "m1", "gpus": ["gpu3"]}]}]},
  {"status": "Failed", "vc": "x", "jobid": "application_3", "user": "d4",
   "submitted_time": "2017-10-09 07:03:09", "attempts": []},
  {"status": "Failed", "vc": "x", "jobid": "application_4", "user": "d4",
   "submitted_time": "None",
   "attempts": [{"start_time": "None", "end_time": "", "detail": []}]}
]"#,
    );
    assert_eq!(ids(&trace), ["application_1", "application_2"]);
    let job = &trace.jobs[1];
    assert_eq!((job.submit_s, job.duration_s, job.gpu_milli), (10, 60 + 86_400, 3000));
    assert_eq!(
        trace.jobs.iter().map(|job| job.status).collect::<Vec<_>>(),
        [Status::Cancelled, Status::Completed]
    );
    assert_eq!(trace.groups.len(), 1, "a skipped job names nobody");
    assert_eq!(trace.skipped, 2);
}

#[test]
fn helios_has_civil_times_and_virtual_clusters() {
    let trace = good(
        "cluster_log.csv",
        "job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
         7,uX,vcJ,train,4,16,1,NODE_FAIL,2020-06-10 00:00:01,2020-06-10 00:00:01,2020-06-10 00:04:10,249,0\n\
         6,uY,vcJ,,0,1,1,COMPLETED,2020-06-09 23:59:59,2020-06-09 23:59:59,2020-06-10 00:00:10,11,0\n\
         8,uY,vcJ,,1,1,1,CANCELLED,2020-06-10 00:00:02,None,None,None,0\n",
    );
    assert_eq!(ids(&trace), ["6", "7"]);
    let job = &trace.jobs[1];
    assert_eq!((job.submit_s, job.duration_s), (2, 249));
    assert_eq!((job.gpu_milli, job.cpu_milli, job.status), (4000, 16_000, Status::Failed));
    assert_eq!(trace.groups.name(0), Some("vcJ"));
    assert_eq!(trace.skipped, 1);
}

const TASKS: &str = "\
j1,ps,1.0,Terminated,1010.0,1100.0,600.0,29.296875,,
j2,tensorflow,1.0,Failed,900.0,950.0,600.0,29.296875,50.0,MISC
j1,worker,2.0,Terminated,1020.0,1200.0,400.0,10.0,150.0,V100
j3,worker,1.0,Running,1030.0,,400.0,10.0,100.0,V100
";

#[test]
fn alibaba_tasks_of_a_job_are_added_up() {
    let trace = good("pai_task_table.csv", TASKS);
    assert_eq!(ids(&trace), ["j2", "j1"]);
    let job = &trace.jobs[1];
    assert_eq!((job.submit_s, job.duration_s), (110, 190));
    assert_eq!((job.gpu_milli, job.cpu_milli, job.memory_mib), (3000, 14_000, 30_000 + 20_480));
    assert_eq!((job.status, trace.jobs[0].status), (Status::Completed, Status::Failed));
    assert_eq!(trace.skipped, 1);
}

#[test]
fn alibaba_jobs_beside_the_tasks_say_who_and_when() {
    let folder = Folder::new();
    let jobs = folder.put(
        "pai_job_table.csv",
        "j1,i1,ada,Terminated,890.0,1200.0\nj2,i2,bob,Failed,900.0,950.0\n",
    );
    let tasks = folder.put("pai_task_table.csv.gz", gzip(TASKS));
    let trace = read(&tasks, None).expect("both tables are good");
    assert_eq!(ids(&trace), ["j1", "j2"]);
    assert_eq!((trace.jobs[0].submit_s, trace.jobs[1].submit_s), (0, 10));
    assert_eq!(trace.users.name(trace.jobs[0].user.expect("a user")), Some("ada"));
    assert_eq!(read(&jobs, None).expect("both tables are good"), trace);
}

#[test]
fn the_table_of_alibabas_simulator_has_gangs() {
    let trace = good(
        "pai_job_no_estimate_100K.csv",
        "job_id,num_gpu,submit_time,num_inst,size,duration,user,num_cpu,gpu_type\n\
         5,0.5,100,3,1,60.0,u1,2,T4\n4,1,90,,1,30,u2,6,V100\n",
    );
    assert_eq!(ids(&trace), ["4", "5"]);
    let job = &trace.jobs[1];
    assert_eq!((job.submit_s, job.duration_s), (10, 60));
    assert_eq!((job.gpu_milli, job.cpu_milli), (1500, 6000));
}

#[test]
fn chronus_counts_minutes_and_best_effort_has_no_deadline() {
    let trace = good(
        "chronus.csv",
        "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type\n\
         0,vc_1,4,12,6910,resnet101,211,8,282,10,0,strict\n\
         1,vc_1,1,10,8897,vgg16,31,6,88,10,1,best\n\
         2,vc_2,0,10,8897,vgg16,1,6,88,2.5,0,strict\n",
    );
    assert_eq!(ids(&trace), ["1", "2", "0"]);
    let [best, cpu, strict] = &trace.jobs[..] else { panic!("three jobs") };
    assert_eq!((strict.submit_s, strict.duration_s, strict.gpu_milli), (120, 211 * 60, 4000));
    assert_eq!((strict.deadline_s, strict.value), (Some(120 + 282 * 60), Some(10_000_000)));
    assert_eq!((best.deadline_s, best.value), (None, Some(10_000_000)));
    assert_eq!((cpu.gpu_milli, cpu.deadline_s, cpu.value), (0, Some(88 * 60), Some(2_500_000)));
}

#[test]
fn a_given_format_is_taken_at_its_word() {
    let folder = Folder::new();
    let path = folder.put("log.txt", SWF);
    assert_eq!(read(&path, Some(TraceFormat::Swf)).expect("it is SWF").jobs.len(), 2);
    assert!(read(&path, Some(TraceFormat::Era)).is_err());
    for format in TraceFormat::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert!("parquet".parse::<TraceFormat>().is_err());
}
