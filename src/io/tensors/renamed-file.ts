import { RequestError } from '../../request-error.js';
import { nearClause } from '../../words/index.js';
import { ownTensor } from './problem/tensor-argument.js';
import { quoted, tensorIn } from './messages.js';
import type { TensorFile } from './tensor-file.js';

/**
 * A file with some of its tensors under other names, as if they were stored under these; messages have the names that are stored.
 * @param places where tensors are, each `:<tensor>`, by the names that they get
 * @throws RequestError for a place in another file, and for a tensor that the file does not have
 */
export function renamedFile<File extends TensorFile>(
  file: File,
  places: Readonly<Record<string, string>>,
): File {
  if (Object.keys(places).length === 0) return file;
  const stored = new Map(
    Object.entries(places).map(([name, place]) => {
      const source = ownTensor(place, file.beside, name);
      if (source === null)
        throw new RequestError(
          `--tensor ${name}=${place} is of another file, and a problem is in one; give ${name}=:<tensor>, or leave out --tensor ${name}`,
        );
      return [name, source];
    }),
  );
  const missing = [...stored.values()].find((source) => !file.entries.has(source));
  if (missing !== undefined)
    throw new RequestError(
      `${tensorIn(file.path, missing)}: --tensor names it, and there is none${nearClause(missing, file.entries.keys())}; the file holds ${[...file.entries.keys()].map(quoted).join(', ')}`,
    );
  const moved = new Set(stored.values());
  const kept = [...file.entries].filter(([name]) => !moved.has(name) && !stored.has(name));
  const given = [...stored].map(
    ([name, source]) => [name, { ...file.entries.get(source)!, name }] as const,
  );
  const as =
    <Rest extends readonly unknown[], Result>(read: (name: string, ...rest: Rest) => Result) =>
    (name: string, ...rest: Rest): Result =>
      read(stored.get(name) ?? name, ...rest);
  return {
    ...file,
    entries: new Map([...given, ...kept]),
    read: as(file.read),
    readElements: as(file.readElements),
    readIntegers: as(file.readIntegers),
    readTruths: as(file.readTruths),
    readBytes: as(file.readBytes),
    sha256: as(file.sha256),
  };
}
