/** What a new job may start from. */
import { BLANK, type Draft } from './draft';

export type TemplateId = 'blank' | 'gpu' | 'gang' | 'cpu';

export const TEMPLATES: Record<TemplateId, Partial<Draft>> = {
  blank: {},
  gpu: { command: 'python train.py', gpu: '1', cpu: '8', memory: '32Gi', time: '2h' },
  gang: { command: 'torchrun train.py', gpu: '8', cpu: '64', memory: '256Gi', replicas: '2', time: '6h' },
  cpu: { command: 'python evaluate.py', cpu: '4', memory: '8Gi', time: '30m', promise: false },
};

export function fromTemplate(id: string | null): Draft {
  const found = id !== null && id in TEMPLATES ? TEMPLATES[id as TemplateId] : {};
  return { ...BLANK, ...found };
}
