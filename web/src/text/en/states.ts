export default {
  waiting: 'Waiting',
  promised: 'Promised',
  starting: 'Starting',
  running: 'Running',
  stopping: 'Stopping',
  succeeded: 'Succeeded',
  failed: 'Failed',
  cancelled: 'Cancelled',
  released: 'Released',
  limit_reached: 'Out of time',
  broken: 'Promise broken',
};
