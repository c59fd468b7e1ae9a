import { RequestError } from '../../../request-error.js';
import { nearClause } from '../../../words/index.js';
import { listed, printable, quoted } from '../messages.js';
import type { TensorFile } from '../tensor-file.js';

/** A link of a dumped chain, as a file of its own. */
export interface ChainPart {
  readonly name: string;
  readonly contract: string;
  /** Its tensors and notes by the names of its contract. */
  readonly file: TensorFile;
  /** The name in the dump of one of its tensors. */
  readonly dumped: (name: string) => string;
}

/** A dump of several links of the decode chain, in the order in which they ran. */
export interface ChainFile {
  readonly parts: readonly ChainPart[];
  /** The file without its links: tensors and notes that are of none of them. */
  readonly unclaimed: { readonly tensors: readonly string[]; readonly notes: readonly string[] };
}

/** A link as a dump declares it. */
interface DeclaredLink {
  readonly name: string;
  readonly contract: string;
  readonly tensors: Readonly<Record<string, string>>;
  readonly notes: Readonly<Record<string, string>>;
}

/** The key of metadata that lists the links of a chain. */
const listKey = 'links';

/** Keys of metadata that say nothing of a link: what libraries write, and the contract. */
const silentKeys = [listKey, 'contract', 'format'];

/** Names of a word with hyphens in prefixes: as it is, and with underscores. */
function prefixesOf(name: string): string[] {
  return [...new Set([name, name.replaceAll('-', '_')])].map((word) => `${word}.`);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The texts of an object of a link. @throws RequestError for anything else */
function textsOf(value: unknown, where: string): Record<string, string> {
  if (value === undefined) return {};
  if (!isObject(value)) throw new RequestError(`${where} is no object of names; make it one`);
  return Object.fromEntries(
    Object.entries(value).map(([key, text]) => {
      if (typeof text === 'string') return [key, text];
      if (typeof text === 'number' || typeof text === 'boolean') return [key, String(text)];
      throw new RequestError(`${where} has no text under ${quoted(key)}; give one`);
    }),
  );
}

/** The contract that a word means. @throws RequestError for another word */
function contractOf(text: unknown, where: string, contracts: readonly string[]): string {
  const word = typeof text === 'string' ? text.trim().toLowerCase().replaceAll('_', '-') : '';
  if (contracts.includes(word)) return word;
  throw new RequestError(
    `${where} is ${quoted(String(text))}${nearClause(word, contracts)}; give one of ${contracts.join(', ')}`,
  );
}

const knownKeys = ['name', 'contract', 'tensors', 'notes'];

function declaredLink(
  value: unknown,
  where: string,
  file: TensorFile,
  contracts: readonly string[],
): DeclaredLink {
  if (!isObject(value))
    throw new RequestError(`${where} is no object; give {"name", "contract", "tensors", "notes"}`);
  const unknown = Object.keys(value).find((key) => !knownKeys.includes(key));
  if (unknown !== undefined)
    throw new RequestError(`${where} has ${quoted(unknown)}; it takes ${knownKeys.join(', ')}`);
  const contract = contractOf(value['contract'], `${where}: contract`, contracts);
  const name = value['name'] ?? contract;
  if (typeof name !== 'string' || !/^[\w-]+$/.test(name))
    throw new RequestError(`${where}: name is no word of letters, digits, - and _; give one`);
  const tensors = textsOf(value['tensors'], `${where}: tensors`);
  for (const [own, dumped] of Object.entries(tensors))
    if (!file.entries.has(dumped))
      throw new RequestError(
        `${where}: ${own} is the tensor ${quoted(dumped)}, which the file lacks; there are ${listed([...file.entries.keys()])}`,
      );
  return { name, contract, tensors, notes: textsOf(value['notes'], `${where}: notes`) };
}

/** The links that metadata lists. @throws RequestError for a list that is none */
function listedLinks(file: TensorFile, contracts: readonly string[]): DeclaredLink[] {
  const where = `${printable(file.path)}: metadata ${listKey}`;
  let parsed: unknown;
  try {
    parsed = JSON.parse(file.metadata[listKey]);
  } catch {
    throw new RequestError(`${where} is not JSON; give a list of links`);
  }
  if (!Array.isArray(parsed) || parsed.length === 0)
    throw new RequestError(`${where} is no list of links; give one object for each`);
  const links = parsed.map((one: unknown, i) =>
    declaredLink(one, `${where}[${i}]`, file, contracts),
  );
  const twice = links.find(({ name }, i) => links.findIndex((one) => one.name === name) < i);
  if (twice !== undefined)
    throw new RequestError(`${where} has two links ${quoted(twice.name)}; name them apart`);
  return links;
}

/** The links whose contracts tensors have as prefixes, in the order in which contracts are listed. */
function prefixedLinks(file: TensorFile, contracts: readonly string[]): DeclaredLink[] {
  const names = [...file.entries.keys()];
  return contracts
    .filter((contract) =>
      prefixesOf(contract).some((prefix) => names.some((name) => name.startsWith(prefix))),
    )
    .map((contract) => ({ name: contract, contract, tensors: {}, notes: {} }));
}

/** The names behind a link's prefix, with the whole names. */
function ownNames(all: readonly string[], { name }: DeclaredLink): Map<string, string> {
  const prefixes = prefixesOf(name);
  return new Map(
    all.flatMap((whole): [string, string][] => {
      const prefix = prefixes.find((one) => whole.startsWith(one));
      return prefix === undefined ? [] : [[whole.slice(prefix.length), whole]];
    }),
  );
}

/** The places of a link's tensors in the dump, by the names of its contract. */
type Places = ReadonlyMap<string, string>;

function placesOf(file: TensorFile, link: DeclaredLink): Places {
  return new Map([...ownNames([...file.entries.keys()], link), ...Object.entries(link.tensors)]);
}

/** What an attention in parts has from the merge behind it, where it has no O of its own. */
const merged = ['out', 'lse'];

/** Names of factors that a merge multiplies O by: then it is not the O of the attention before it. */
const factors = ['output_scale', 'v_descale'];

/** The places of every link, with the merged O of an attention that has only its parts. */
function allPlaces(file: TensorFile, links: readonly DeclaredLink[]): Places[] {
  const all = links.map((link) => placesOf(file, link));
  return all.map((places, i) => {
    if (links[i].contract !== 'attention' || places.has('out')) return places;
    const merge = links.findIndex(({ contract }, at) => at > i && contract === 'merge');
    const lender = all[merge] ?? new Map<string, string>();
    const notes = links[merge]?.notes ?? {};
    const isScaled = factors.some((name) => lender.has(name) || Number(notes[name] ?? 1) !== 1);
    const lent = isScaled ? [] : [...lender].filter(([name]) => merged.includes(name));
    return new Map([...lent, ...places]);
  });
}

/** A link as a file: tensors and notes by the names of its contract. */
function partOf(
  file: TensorFile,
  link: DeclaredLink,
  places: Places,
  said: Readonly<Record<string, string>>,
): ChainPart {
  const notes = { ...file.metadata, ...said };
  const ownNotes = [...ownNames(Object.keys(notes), link)].map(([own, whole]) => [
    own,
    notes[whole],
  ]);
  const dumped = (name: string) => places.get(name) ?? `${link.name}.${name}`;
  const view: TensorFile = {
    ...file,
    metadata: { ...link.notes, ...(Object.fromEntries(ownNotes) as Record<string, string>) },
    entries: new Map(
      [...places].flatMap(([own, whole]) => {
        const entry = file.entries.get(whole);
        return entry === undefined ? [] : [[own, { ...entry, name: own }] as const];
      }),
    ),
    read: (name) => file.read(dumped(name)),
    readElements: (name, start, count) => file.readElements(dumped(name), start, count),
    readIntegers: (name) => file.readIntegers(dumped(name)),
    readTruths: (name) => file.readTruths(dumped(name)),
    readBytes: (name) => file.readBytes(dumped(name)),
    sha256: (name) => file.sha256(dumped(name)),
    close: async () => undefined,
  };
  return { name: link.name, contract: link.contract, file: view, dumped };
}

/**
 * The links of a file that holds several: those that its metadata lists under `links`, else those whose contracts are prefixes of all
 * of its tensors (`selection.scores`, `cache_write.k`); null for a file of something else.
 * @param contracts the contracts of links, in the order in which they run
 * @param said notes that a caller gives, `selection.law`, which take the place of metadata
 * @throws RequestError for a list that cannot be read
 */
export function chainFile(
  file: TensorFile,
  contracts: readonly string[],
  said: Readonly<Record<string, string>>,
): ChainFile | null {
  const names = [...file.entries.keys()];
  const isListed = Object.hasOwn(file.metadata, listKey);
  const links = isListed ? listedLinks(file, contracts) : prefixedLinks(file, contracts);
  const isOf = (name: string) =>
    links.some((link) => prefixesOf(link.name).some((prefix) => name.startsWith(prefix)));
  if (!isListed && (links.length === 0 || !names.every(isOf))) return null;
  const stray = Object.keys(said).find((key) => !isOf(key));
  if (stray !== undefined)
    throw new RequestError(
      `--note ${quoted(stray)} is of no link of this chain; name one before a point: ${links.map(({ name }) => name).join(', ')}`,
    );
  const mapped = new Set(links.flatMap(({ tensors }) => Object.values(tensors)));
  const places = allPlaces(file, links);
  return {
    parts: links.map((link, i) => partOf(file, link, places[i], said)),
    unclaimed: {
      tensors: names.filter((name) => !isOf(name) && !mapped.has(name)),
      notes: Object.keys(file.metadata).filter((key) => !silentKeys.includes(key) && !isOf(key)),
    },
  };
}
