import { bytesInMemory, type FormatName, formats } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import { listed, quoted, shortened, tensorIn } from './messages.js';

/** The type of elements that are whole numbers or truths. */
export type WholeDtype =
  'truth' | 'int8' | 'uint8' | 'int16' | 'uint16' | 'int32' | 'uint32' | 'int64' | 'uint64';

/** Facts about the elements stored under a container's dtype. */
export interface DtypeFacts {
  /** Bits of one element; null when the dtype does not fix them. */
  readonly bits: number | null;
  /** The format of its elements, or null when they are no floating-point numbers of a known format. */
  readonly format: FormatName | null;
  /** The formats that a caller may declare its elements to have. */
  readonly declarable: readonly DeclaredFormat[];
  /** Narrower formats that a caller may declare its elements to be numbers of: a dump may have been widened. */
  readonly narrower: readonly FormatName[];
  /** The type of its elements if they are whole numbers or truths; null otherwise. */
  readonly whole: WholeDtype | null;
  /** The kind of its elements, for messages, as in `holds ${holds}`. */
  readonly holds: string;
  /** Advice for a tensor that cannot be read, for messages. */
  readonly mend: string;
}

/** The formats stored in a container of that many bits. */
function formatsOfWidth(bits: number): DeclaredFormat[] {
  const named = Object.values(formats)
    .filter((format) => 8 * bytesInMemory(format) === bits)
    .map((format) => format.name);
  return bits === 8 ? [...named, packedFormat] : named;
}

/** Formats whose numbers may be stored as fp32 or fp64, by the format that stores them. */
const widenedFrom: Readonly<Partial<Record<FormatName, readonly FormatName[]>>> = {
  fp32: ['bf16', 'fp16', 'e4m3', 'e5m2', 'e2m1'],
  fp64: ['fp32', 'tf32', 'bf16', 'fp16', 'e4m3', 'e5m2', 'e2m1'],
};

const convert = 'convert it to a floating-point dtype before saving, or leave it out';

/** Facts of a dtype whose elements are numbers of a format; fp32 may be declared tf32. */
export function floatDtype(format: FormatName): DtypeFacts {
  return {
    bits: formats[format].storageBits,
    format,
    declarable: format === 'fp32' ? ['fp32', 'tf32'] : [format],
    narrower: widenedFrom[format] ?? [],
    whole: null,
    holds: `${format} numbers`,
    mend: '',
  };
}

/**
 * Facts of a dtype that may carry the bit patterns of any format of its width, as tools without bf16 or
 * fp8 save them: `format` is the undeclared meaning, if there is one.
 */
export function rawDtype(
  bits: number,
  holds: string,
  format: FormatName | null = null,
): DtypeFacts {
  const declarable = formatsOfWidth(bits);
  return { bits, format, declarable, narrower: [], whole: null, holds, mend: convert };
}

/** Facts of a dtype of integers, which may carry the bit patterns of any format of their width. */
export function integerDtype(whole: Exclude<WholeDtype, 'truth'>): DtypeFacts {
  const bits = Number(/[0-9]+/.exec(whole)?.[0]);
  const holds = `${bits}-bit ${whole.startsWith('u') ? 'unsigned ' : ''}integers`;
  return { ...rawDtype(bits, holds), whole };
}

/** Facts of a dtype of truths, a byte each. */
export const truthDtype: DtypeFacts = { ...opaqueDtype(8, 'booleans'), whole: 'truth' };

/** Facts of a dtype that is legal in its container, but has no known format. */
export function opaqueDtype(
  bits: number | null,
  holds: string,
  mend: string = convert,
): DtypeFacts {
  return { bits, format: null, declarable: [], narrower: [], whole: null, holds, mend };
}

/** e2m1, two elements in a byte with the first in its low half, as PyTorch's float4_e2m1fn_x2 stores them. */
const packedFormat = 'e2m1x2';

/** A format that a caller may declare a tensor to have. */
export type DeclaredFormat = FormatName | typeof packedFormat;

/** Names of the formats that may be declared. */
export const declaredFormatNames: readonly DeclaredFormat[] = [
  ...(Object.keys(formats) as FormatName[]),
  packedFormat,
];

/** The formats a caller declares tensors to have, by tensor name. */
export type DeclaredFormats = Readonly<Record<string, DeclaredFormat>>;

/** Options for reading a tensor file. */
export interface OpenOptions {
  /**
   * Formats of tensors whose dtype does not determine it, by tensor name: e4m3 or e5m2 stored as opaque bytes or 8-bit
   * integers, e2m1 there as one element a byte, or e2m1x2 as two, bf16 or fp16 stored as 16-bit ones, tf32 stored as
   * fp32; and narrower formats than fp32 or fp64 whose numbers were widened to it.
   */
  readonly formats?: DeclaredFormats;
  /** Whether the formats may be of tensors of other files; default false: each is of a tensor of this one. */
  readonly isOneOfSeveral?: boolean;
}

/**
 * Checks that every declaration names a tensor of the file and a known format.
 * @param isOneOfSeveral whether a declaration may be of a tensor of another file
 * @throws RequestError listing the known ones
 */
export function checkDeclarations(
  path: string,
  { formats: declared = {}, isOneOfSeveral = false }: OpenOptions,
  names: ReadonlySet<string>,
): void {
  for (const [name, format] of Object.entries(declared)) {
    if (!declaredFormatNames.includes(format))
      throw new RequestError(
        `${tensorIn(path, name)}: declared format ${quoted(String(format))} is unknown; ` +
          `use one of ${declaredFormatNames.join(', ')}`,
      );
    if (!names.has(name) && !isOneOfSeveral)
      throw new RequestError(
        `${tensorIn(path, name)}: a format is declared for it, but there is no such tensor; ` +
          `the file holds ${listed(names) || 'none'}`,
      );
  }
}

/** The format that a tensor's elements are read as, or the reason that they cannot be read. */
export type Reading =
  | {
      readonly format: FormatName;
      readonly refusal: null;
      readonly isPacked?: boolean;
      /** The wider format that stores its numbers. */
      readonly storedAs?: FormatName;
    }
  | { readonly format: null; readonly refusal: string };

/**
 * The key of a file's metadata that notes a format which the dtype alone does not tell: the writers
 * use it for tf32, which every container stores as fp32.
 */
export function formatNote(name: string): string {
  return `format.${name}`;
}

/** The file and name of a tensor, and its dtype as the file spells it. */
interface StoredName {
  readonly path: string;
  readonly name: string;
  readonly dtype: string;
}

function readAs(format: DeclaredFormat): Reading {
  return format === packedFormat
    ? { format: 'e2m1', refusal: null, isPacked: true }
    : { format, refusal: null };
}

/**
 * The reading of a tensor: by its declared format, else by the format that its file's metadata notes (a
 * note that does not fit the dtype is ignored), else by its dtype.
 * @throws RequestError when the declared format is impossible for the dtype
 */
export function readingOf(
  { path, name, dtype }: StoredName,
  facts: DtypeFacts,
  declared: DeclaredFormats,
  metadata: ReadonlyMap<string, string>,
): Reading {
  const where = tensorIn(path, name);
  const spelling = `${facts.holds} (dtype ${shortened(dtype)})`;
  const declaration = Object.hasOwn(declared, name) ? declared[name] : null;
  if (declaration !== null) {
    const narrower = facts.narrower.find((format) => format === declaration);
    if (narrower !== undefined && facts.format !== null)
      return { format: narrower, refusal: null, storedAs: facts.format };
    if (!facts.declarable.includes(declaration))
      throw new RequestError(
        `${where}: cannot be declared ${declaration}, for it holds ${spelling}; ` +
          (facts.declarable.length === 0 ? facts.mend : `use ${facts.declarable.join(' or ')}`),
      );
    return readAs(declaration);
  }
  const note = facts.declarable.find((format) => format === metadata.get(formatNote(name)));
  const format = note ?? facts.format;
  if (format !== null) return readAs(format);
  const examples = facts.declarable
    .map((candidate) => `--format ${shortened(name)}=${candidate}`)
    .join(' or ');
  return {
    format: null,
    refusal:
      facts.declarable.length === 0
        ? `${where}: holds ${spelling}, which cannot be read as numbers; ${facts.mend}`
        : `${where}: holds ${spelling}, which do not say their number format; if they are the bit ` +
          `patterns of one, declare it: ${examples}`,
  };
}
