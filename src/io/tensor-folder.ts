import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RequestError } from '../request-error.js';
import { type FileSource, openByteSource } from './byte-source.js';
import { fileError } from './file-error.js';
import {
  checkDeclarations,
  JsonCursor,
  npyArray,
  npyTensorName,
  printable,
  quoted,
  tensorFile,
  type DeclaredFormats,
  type OpenOptions,
  type HeldTensor,
  type Platform,
  type TensorFile,
} from './tensors/index.js';

/** The file of a folder that carries its metadata. */
const metadataFile = 'metadata.json';

/** The largest metadata file that is read, in bytes. */
const maxMetadataBytes = 10_000_000;

/**
 * The names of the files that make up a folder of tensors: its `.npy` files and `metadata.json`, in
 * the order of their UTF-16 code units. Other files, folders, and files whose name begins with a dot
 * (which some systems leave beside each file) do not count.
 * @throws RequestError when the folder cannot be read
 */
export async function folderFiles(path: string): Promise<string[]> {
  const all = await readdir(path).catch((error: unknown) => {
    throw fileError(error, path, 'list the folder');
  });
  return all
    .filter((name) => name === metadataFile || (name.endsWith('.npy') && !name.startsWith('.')))
    .sort();
}

async function withSource<T>(path: string, use: (source: FileSource) => Promise<T>): Promise<T> {
  const source = await openByteSource(path);
  try {
    return await use(source);
  } finally {
    await source.close();
  }
}

/** A scalar of JSON as a metadata string; numbers stay as they are spelled. */
function scalarText(cursor: JsonCursor): string | null {
  const kind = cursor.kind();
  if (kind === 'string') return cursor.string();
  if (kind === 'number') return cursor.number();
  return kind === 'literal' ? String(cursor.literal()) : null;
}

async function readMetadata(path: string): Promise<Map<string, string>> {
  const where = printable(path);
  const bytes = await withSource(path, async (source) => {
    if (source.size > maxMetadataBytes)
      throw new RequestError(
        `${where}: has ${source.size} bytes, above the limit of ${maxMetadataBytes}; shorten it`,
      );
    const content = new Uint8Array(source.size);
    await source.read(content, 0);
    return content;
  });
  const refuse = (what: string): never => {
    throw new RequestError(
      `${where}: ${what}; make it one JSON object of strings, numbers, booleans and nulls`,
    );
  };
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return refuse('is no valid UTF-8');
  }
  const metadata = new Map<string, string>();
  const cursor = new JsonCursor(text, refuse);
  cursor.object((key) => {
    metadata.set(key, scalarText(cursor) ?? refuse(`the value under ${quoted(key)} is nested`));
  });
  cursor.end();
  return metadata;
}

/**
 * Opens one array of the folder. Its file is opened anew for each reading, so that a folder of many
 * files does not use up the process's file handles; a file that has changed meanwhile is refused.
 */
async function folderArray(
  folder: string,
  fileName: string,
  declared: DeclaredFormats,
  metadata: ReadonlyMap<string, string>,
): Promise<HeldTensor> {
  const path = join(folder, fileName);
  const seen = await withSource(path, async ({ size, modified }) => ({ size, modified }));
  const read = (target: Uint8Array, offset: number): Promise<void> =>
    withSource(path, async (source) => {
      if (source.size !== seen.size || source.modified !== seen.modified)
        throw new RequestError(
          `${printable(path)}: has changed since the folder was opened; open the folder again`,
        );
      await source.read(target, offset);
    });
  return npyArray({
    path,
    name: npyTensorName(fileName),
    read,
    totalBytes: seen.size,
    declared,
    metadata,
    compound: 'listed',
  });
}

/**
 * The tensors of a folder of npy files, named after the files, with the values of `metadata.json`,
 * where there is one, as metadata. There, `format.<name>` says the format of an array whose dtype does
 * not tell it, as a declaration does.
 * @throws RequestError when the folder has no npy file, or a file of it breaks its format
 */
export async function openTensorFolder(
  { path, platform }: { readonly path: string; readonly platform: Platform },
  options: OpenOptions,
): Promise<TensorFile> {
  const { formats: declared = {} } = options;
  const files = await folderFiles(path);
  const arrays = files.filter((name) => name !== metadataFile);
  if (arrays.length === 0)
    throw new RequestError(
      `${printable(path)}: is a folder without .npy files; name a folder of them, or a tensor file`,
    );
  checkDeclarations(path, options, new Set(arrays.map(npyTensorName)));
  const metadata = files.includes(metadataFile)
    ? await readMetadata(join(path, metadataFile))
    : new Map<string, string>();
  const tensors: HeldTensor[] = [];
  for (const fileName of arrays)
    tensors.push(await folderArray(path, fileName, declared, metadata));
  return tensorFile({ path, platform }, metadata, tensors, async () => undefined);
}
