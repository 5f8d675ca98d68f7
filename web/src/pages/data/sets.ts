/** Names of the wire for data sets, and where one's files are. */
import type { Schemas } from '../../api/types';

export type DataSet = Schemas['DataSet'];
export type FileEntry = Schemas['FileEntry'];
export type Visibility = Schemas['Visibility'];

/** The address of a file of a set, with every part of its path written safely. */
export function fileUrl(owner: string, name: string, path: string): string {
  const parts = [owner, name].map(encodeURIComponent);
  return `/api/v1/data/${parts[0]}/${parts[1]}/files/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/** A path's last part. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
