import yazl from 'yazl';
import { Readable } from 'node:stream';
import { RequestError } from '../../request-error.js';
import type { ByteSource } from '../byte-source.js';
import { checkDeclarations, type DeclaredFormats } from '../dtype.js';
import { printable, quoted, tensorIn } from '../messages.js';
import { npyArray, npyContent, npyContentBytes, npyTensorName } from '../npy/npy.js';
import { memberReader, type MemberReader } from './member.js';
import { type StoredTensor, tensorFile, type TensorFile } from '../tensor-file.js';
import { readZipDirectory } from './zip-directory.js';
import type { StoredTensor as AnyTensor } from '../../problem/index.js';
import { atomicWriteFile } from '../atomic-write.js';
import { checkedTensors, type NamedTensors } from '../named-tensors.js';

/** The pickle that torch.save puts into its archives. */
const pickleMember = /(^|\/)data\.pkl$/;

function refuseWithoutArrays(path: string, names: ReadonlySet<string>): void {
  const where = printable(path);
  if ([...names].some((name) => pickleMember.test(name)))
    throw new RequestError(
      `${where}: is a pickle of torch.save, which is never read, as it may run code; ` +
        'save the tensors with safetensors.torch.save_file',
    );
  if (names.size > 0)
    throw new RequestError(
      `${where}: is a zip archive without .npy members; save arrays with numpy.savez`,
    );
}

/**
 * The tensors of an npz archive: its `.npy` members, stored or deflated, named without that ending.
 * Other members are passed over. The header of each array is read and checked; the elements are read
 * later, each range from where it lies in a stored member, by inflating up to it in a deflated one.
 * @param source open on the file; closed with the returned TensorFile
 * @throws RequestError when the archive or one of its arrays is damaged, encrypted, or declares other
 * sizes than it has
 */
export async function openNpz(source: ByteSource, declared: DeclaredFormats): Promise<TensorFile> {
  const { path } = source;
  const { names, members } = await readZipDirectory(
    source,
    (name) => name.endsWith('.npy'),
    (name) => tensorIn(path, npyTensorName(name)),
  );
  if (members.size === 0) refuseWithoutArrays(path, names);
  checkDeclarations(path, declared, new Set([...members.keys()].map(npyTensorName)));
  const metadata = new Map<string, string>();
  const readers: MemberReader[] = [];
  const tensors: StoredTensor[] = [];
  for (const [memberName, member] of members) {
    const name = npyTensorName(memberName);
    const reader = memberReader(source, member, tensorIn(path, name));
    readers.push(reader);
    try {
      tensors.push(
        await npyArray({
          path,
          name,
          read: reader.read,
          totalBytes: member.uncompressedSize,
          declared,
          metadata,
          compound: 'listed',
        }),
      );
    } finally {
      await reader.release();
    }
  }
  return tensorFile(path, metadata, tensors, async () => {
    for (const reader of readers) await reader.release();
    await source.close();
  });
}

/** Bytes handed to the archive at a time. */
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
 * the whole archive or what it held before.
 * @throws RequestError when a tensor or its name cannot be written, or the file system fails
 */
export async function writeNpz(path: string, tensors: NamedTensors): Promise<void> {
  const named = checkedTensors(tensors);
  for (const [name] of named) checkMemberName(name);
  await atomicWriteFile(path, archiveOf(named));
}
