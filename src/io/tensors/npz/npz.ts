import { RequestError } from '../../../request-error.js';
import { checkDeclarations, type OpenOptions } from '../dtype.js';
import { printable, tensorIn } from '../messages.js';
import { npyArray, npyTensorName } from '../npy/npy.js';
import { memberReader, type MemberReader } from './member.js';
import { type HeldTensor, tensorFile } from '../read-tensors.js';
import type { ByteSource, TensorFile } from '../tensor-file.js';
import { readZipDirectory } from './zip.js';

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
export async function openNpz(source: ByteSource, options: OpenOptions): Promise<TensorFile> {
  const { formats: declared = {} } = options;
  const { path } = source;
  const { names, members } = await readZipDirectory(
    source,
    (name) => name.endsWith('.npy'),
    (name) => tensorIn(path, npyTensorName(name)),
  );
  if (members.size === 0) refuseWithoutArrays(path, names);
  checkDeclarations(path, options, new Set([...members.keys()].map(npyTensorName)));
  const metadata = new Map<string, string>();
  const readers: MemberReader[] = [];
  const tensors: HeldTensor[] = [];
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
  return tensorFile(source, metadata, tensors, async () => {
    for (const reader of readers) await reader.release();
    await source.close();
  });
}
