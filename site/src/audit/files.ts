import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { blobFiles, webCodecs, type BlobFiles } from '../../../src/browser/index.js';
import type { NamedFile } from './protocol.js';

const codecs = webCodecs(() => {
  const hash = sha256.create();
  return { update: (bytes) => hash.update(bytes), digest: () => bytesToHex(hash.digest()) };
});

/** Files of a page as tensor files. */
export function tensorFilesOf(files: readonly NamedFile[]): BlobFiles {
  return blobFiles(new Map(files), codecs);
}
