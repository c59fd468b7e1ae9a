import { Readable } from 'node:stream';
import yazl from 'yazl';
import type { StoredTensor as AnyTensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { atomicWriteFile } from '../../src/io/atomic-write.js';
import { checkedTensors, quoted, type NamedTensors } from '../../src/io/tensors/index.js';
import { npyContent, npyContentBytes } from './write-npy.js';

/** Number of bytes handed to the archive at a time. */
const pieceBytes = 1 << 20;

/** The earliest time a zip archive can note; a fixed one makes equal tensors equal files. */
const epoch = new Date(1980, 0, 1);

function* pieces(tensor: AnyTensor): Generator<Uint8Array> {
  for (const part of npyContent(tensor))
    for (let start = 0; start < part.length; start += pieceBytes)
      yield part.subarray(start, start + pieceBytes);
}

/** Refuses a name that would come back as another one, or not at all. */
function checkMemberName(name: string): void {
  const refuse = (why: string): never => {
    throw new RequestError(
      `tensor ${quoted(name)} cannot be a member of an npz: ${why}; rename it`,
    );
  };
  if (/\p{Surrogate}/u.test(name)) refuse('it holds a lone surrogate, which UTF-8 cannot carry');
  if (name.includes('\\')) refuse('zip archives have no backslash in names');
  if (/^([a-zA-Z]:|\/)/.test(name) || name.split('/').includes('..'))
    refuse('it reads as a path outside the archive');
  if (Buffer.byteLength(name) > 0xff00) refuse('it is too long');
}

function archiveOf(named: readonly [string, AnyTensor][]): AsyncIterable<Uint8Array> {
  const archive = new yazl.ZipFile();
  const output = archive.outputStream as Readable;
  archive.on('error', (error: Error) => output.destroy(error));
  for (const [name, tensor] of named)
    archive.addReadStreamLazy(
      `${name}.npy`,
      {
        compress: false,
        size: npyContentBytes(tensor),
        mtime: epoch,
        forceDosTimestamp: true,
      },
      (pump) => pump(null, Readable.from(pieces(tensor), { objectMode: false })),
    );
  archive.end();
  return output;
}

/**
 * Writes an npz archive, as numpy.savez does: one stored `.npy` member for each tensor, with the
 * dtypes of `writeNpy`. Nothing is held in memory beyond a few pieces of 1 MiB, and the path holds
 * the whole archive or its old content.
 * @throws RequestError when a tensor or its name cannot be written, or the file system fails
 */
export async function writeNpz(path: string, tensors: NamedTensors): Promise<void> {
  const named = checkedTensors(tensors);
  for (const [name] of named) checkMemberName(name);
  await atomicWriteFile(path, archiveOf(named));
}
