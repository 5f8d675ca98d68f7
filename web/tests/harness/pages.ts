/** Every page and every part of one that has an address, for what must hold on all of them. */
import type { Seeded } from './seed';

export function everyPage(seeded: Seeded): readonly (readonly [name: string, path: string])[] {
  return [
    ['overview', '/'],
    ['welcome', '/welcome'],
    ['new-job', '/jobs/new?template=gpu'],
    ['jobs', '/jobs'],
    ['job', `/jobs/${seeded.done}`],
    ['job-waiting', `/jobs/${seeded.waiting}`],
    ['job-promised', `/jobs/${seeded.promised}`],
    ['job-log', `/jobs/${seeded.done}?tab=logs`],
    ['job-metrics', `/jobs/${seeded.done}?tab=metrics`],
    ['job-usage', `/jobs/${seeded.done}?tab=usage`],
    ['job-outputs', `/jobs/${seeded.done}?tab=outputs`],
    ['compare', `/compare?jobs=${seeded.done},${seeded.promised}`],
    ['market', '/market?pool=training'],
    ['cluster', '/cluster'],
    ['node', '/cluster?node=l4-2'],
    ['promises', '/cluster?view=promises'],
    ['domains', '/cluster?view=domains'],
    ['queues', '/queues'],
    ['policies', '/queues?view=policies&policy=priority'],
    ['data', '/data'],
    ['wallet', '/wallet?of=ada'],
    ['report', '/report'],
    ['lab', '/lab'],
    ['administration', '/administration'],
    ['groups', '/administration?tab=groups'],
    ['market-rules', '/administration?tab=market'],
    ['all-tokens', '/administration?tab=tokens'],
    ['audit', '/administration?tab=audit'],
    ['health', '/administration?tab=health'],
    ['tokens', '/tokens'],
    ['nowhere', '/no/such/place'],
  ];
}
