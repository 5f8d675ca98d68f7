/** By what a pool is priced in one number: GPUs where it has any, else cores. */
import type { PricePoint } from '../../api/types';

export function unitOf(point: PricePoint): 'gpu' | 'cpu' {
  return Number(point.gpu) > 0 ? 'gpu' : 'cpu';
}
