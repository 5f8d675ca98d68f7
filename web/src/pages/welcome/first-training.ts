/** The first job of a newcomer: a small real training with nothing but Python's own library. */
import type { NewJob } from '../../api/types';
// The same that `era up --try` runs.
import script from '../../../../crates/era/src/up/train.py?raw';

export const FIRST_TRAINING: NewJob = {
  name: 'first-training',
  work: { command: ['python3', '-c', script] },
  ask: { resources: { cpu: '1', memory: '256Mi' }, duration_s: 60 },
  priority: 0,
};
