/** Addresses of what a job has left. */

/** Each part of the path by itself: a name may have any letter but a slash. */
export function outputAddress(job: number, path: string): string {
  return `/api/v1/jobs/${job}/outputs/${path.split('/').map(encodeURIComponent).join('/')}`;
}
