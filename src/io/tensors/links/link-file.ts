import type { Tensor } from '../../../formats/index.js';
import type { IntegerTensor } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { nearClause } from '../../../words/index.js';
import { printable, quoted } from '../messages.js';
import { keptNotes, withoutIgnored } from '../problem/settings.js';
import { openTensorArgument, type ChosenTensor } from '../problem/tensor-argument.js';
import type { TensorFile } from '../tensor-file.js';

/** What a caller says of a link beside its file. */
export interface LinkSettings {
  /** Places of tensors by their names in the contract, each `<file>[:<tensor>]`. */
  readonly tensors?: Readonly<Record<string, string>> | undefined;
  /** Settings by their names, which take the place of the file's metadata. */
  readonly notes?: Readonly<Record<string, string>> | undefined;
  /** Names of the file that are left aside. */
  readonly ignored?: readonly string[] | undefined;
}

/** The names that a contract knows. */
export interface LinkNames {
  readonly tensors: readonly string[];
  readonly notes: readonly string[];
}

/** The bytes of a tensor of any dtype. */
export interface StoredBytes {
  readonly bytes: Uint8Array;
  /** As the file spells it. */
  readonly dtype: string;
  readonly shape: readonly number[];
}

/** Where a tensor that was read is. */
export interface LinkSource {
  /** Its name in the contract. */
  readonly name: string;
  readonly path: string;
  readonly tensor: string;
}

/** The tensors and settings of a link, by the names of its contract. */
export interface LinkFile {
  readonly path: string;
  readonly has: (name: string) => boolean;
  /**
   * Numbers of a format. @throws RequestError where there is none of that name, or it holds no such numbers; so of the other
   * readers
   */
  readonly numbers: (name: string) => Promise<Tensor>;
  readonly integers: (name: string) => Promise<IntegerTensor>;
  readonly bytes: (name: string) => Promise<StoredBytes>;
  /** A setting: the caller's, else the file's metadata; undefined where neither has it. */
  readonly note: <T>(name: string, parse: (text: string, where: string) => T) => T | undefined;
  /** @throws RequestError that names the file */
  readonly refuse: (what: string) => never;
  /** The tensors that were read so far, in that order. */
  readonly sources: () => readonly LinkSource[];
  /** Tensors of the file, and keys of its metadata with "metadata " before them, that nothing has read so far. */
  readonly unused: () => readonly string[];
}

/** Keys of metadata that say nothing of a link: its contract, and what libraries write. */
const silentNotes = ['contract', 'format'];

/** @throws RequestError for a name that a contract does not know */
function rejectUnknown(
  given: Readonly<Record<string, string>>,
  known: readonly string[],
  flag: string,
): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new RequestError(
    `${flag} ${quoted(unknown)} is not of this contract${nearClause(unknown, known)}: it has ${known.join(', ')}`,
  );
}

/**
 * A file as one of a link of the decode chain: its tensors by the names of a contract, in the file itself or where a caller says.
 * @throws RequestError for names that the contract does not know
 */
export function linkFile(
  source: TensorFile,
  names: LinkNames,
  { tensors = {}, notes = {}, ignored }: LinkSettings = {},
): LinkFile {
  rejectUnknown(tensors, names.tensors, '--tensor');
  rejectUnknown(notes, names.notes, '--note');
  const file = withoutIgnored(source, { ignored });
  const own = keptNotes(file, { ignored });
  const read = new Map<string, LinkSource>();
  const readNotes = new Set<string>(silentNotes);
  const placeOf = (name: string) =>
    tensors[name] ?? (file.entries.has(name) ? `:${name}` : undefined);
  const refuse = (what: string): never => {
    throw new RequestError(`${printable(file.path)}: ${what}`);
  };
  async function open<T>(name: string, reader: (chosen: ChosenTensor) => Promise<T>): Promise<T> {
    const place = placeOf(name);
    if (place === undefined)
      return refuse(`has no tensor ${quoted(name)}; give it as --tensor ${name}=<file>[:tensor]`);
    const chosen = await openTensorArgument(place, file, name);
    try {
      read.set(name, { name, path: chosen.file.path, tensor: chosen.name });
      return await reader(chosen);
    } finally {
      await chosen.close();
    }
  }
  return {
    path: file.path,
    has: (name) => placeOf(name) !== undefined,
    numbers: (name) => open(name, (chosen) => chosen.file.read(chosen.name)),
    integers: (name) => open(name, (chosen) => chosen.file.readIntegers(chosen.name)),
    bytes: (name) =>
      open(name, async (chosen) => {
        const bytes = await chosen.file.readBytes(chosen.name);
        const { dtype, shape } = chosen.file.entries.get(chosen.name)!;
        return { bytes, dtype, shape };
      }),
    note: (name, parse) => {
      readNotes.add(name);
      if (Object.hasOwn(notes, name)) return parse(notes[name], `--note ${name}`);
      if (!Object.hasOwn(own, name)) return undefined;
      return parse(own[name], `${printable(file.path)}: metadata ${name}`);
    },
    refuse,
    sources: () => [...read.values()],
    unused: () => {
      const used = [...read.values()].flatMap(({ path, tensor }) =>
        path === file.path ? [tensor] : [],
      );
      return [
        ...[...file.entries.keys()].filter((name) => !used.includes(name)),
        ...Object.keys(own)
          .filter((key) => !readNotes.has(key))
          .map((key) => `metadata ${key}`),
      ];
    },
  };
}
