import {
  checkJoint,
  joints,
  type DumpedTensor,
  type Joint,
  type LinkCheck,
} from '../../../audit/index.js';
import { problemNote, type ChainPart } from '../../../io/tensors/index.js';

/** A check of what one link handed to another, with the index of the later of the two. */
export interface CheckedJoint {
  readonly link: number;
  readonly check: LinkCheck;
}

const integerDtype = /^(u?int|[iu](8|16|32|64)$|[<|>][iu])/i;

/** A tensor of a dump: integers as numbers, since their widths may differ, and all else as bytes. */
async function dumpedTensor({ file }: ChainPart, name: string): Promise<DumpedTensor> {
  const { dtype = '', shape = [] } = file.entries.get(name) ?? {};
  const isWide = integerDtype.test(dtype) && !/8$|1$/.test(dtype);
  const data = isWide ? (await file.readIntegers(name)).data : await file.readBytes(name);
  return { shape, dtype, data };
}

/** The reason why tensors of a joint mean different things though they have one shape; null for none. */
function otherMeaning({ wrote }: Joint, writer: ChainPart, reader: ChainPart): string | null {
  if (wrote !== 'indices') return null;
  const note = (part: ChainPart, key: string) => problemNote(part.file, key)?.text.trim();
  if (note(writer, 'index_base') === 'row')
    return `indices of ${writer.name} are counted from row_start, those of ${reader.name} from the first key`;
  if (note(reader, 'kv_index_of') === 'slots')
    return `indices of ${writer.name} are positions, those of ${reader.name} slots of the cache`;
  return null;
}

/** The part of a contract that handed something to another part: the last before it, else, of a merge, the first behind it. */
function writerOf(parts: readonly ChainPart[], of: Joint, reader: number): number {
  const isWriter = ({ contract, file }: ChainPart) =>
    contract === of.writer && file.entries.has(of.wrote);
  const before = parts.slice(0, reader).findLastIndex(isWriter);
  return before >= 0 || of.writer !== 'merge' ? before : parts.findIndex(isWriter);
}

async function checkOne(
  of: Joint,
  [writer, reader]: readonly [ChainPart, ChainPart],
): Promise<LinkCheck> {
  const before = `${of.wrote}_before`;
  const tensors = {
    wrote: await dumpedTensor(writer, of.wrote),
    read: await dumpedTensor(reader, of.reads),
    before: writer.file.entries.has(before) ? await dumpedTensor(writer, before) : null,
  };
  const check = checkJoint(of, { writer: writer.name, reader: reader.name }, tensors);
  const unlike = otherMeaning(of, writer, reader);
  return unlike === null
    ? check
    : { ...check, checked: 0, wrong: 0, statement: null, unjudged: unlike };
}

/**
 * Holds what each link of a chain read against what another wrote, where both are in the dump as tensors of their own.
 * @throws RequestError for tensors that cannot be read
 */
export async function checkJoints(parts: readonly ChainPart[]): Promise<CheckedJoint[]> {
  const checked: CheckedJoint[] = [];
  for (const [at, reader] of parts.entries())
    for (const of of joints) {
      if (of.reader !== reader.contract || !reader.file.entries.has(of.reads)) continue;
      const from = writerOf(parts, of, at);
      if (from < 0) continue;
      const writer = parts[from];
      // One tensor of the dump under two names is the same by being one.
      if (writer.dumped(of.wrote) === reader.dumped(of.reads)) continue;
      checked.push({ link: Math.max(from, at), check: await checkOne(of, [writer, reader]) });
    }
  return checked;
}
