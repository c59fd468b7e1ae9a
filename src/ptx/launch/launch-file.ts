import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';
import { readContract, type ContractFile, type ContractNames } from './contract-file.js';
import { parseJson, violationOf } from './json-text.js';
import { loadChecks, type Checks } from './launch-checks.js';
import { parameterKinds, type ScalarKind } from './launch-schemas.js';

/** A number; as a text, an expression of the problem or an integer that JSON cannot hold. */
export type Amount = number | string;

/** The arguments of cuTensorMapEncodeTiled, by their names there; dimension 0 is the innermost. */
export interface TensorMapFile {
  readonly tensor: string;
  readonly byteOffset?: Amount;
  readonly elementType: string;
  readonly globalDim: readonly Amount[];
  /** Strides in bytes, from dimension 1 on. */
  readonly globalStrides: readonly Amount[];
  readonly boxDim: readonly Amount[];
  readonly elementStrides?: readonly Amount[];
  readonly interleave?: string;
  readonly swizzle?: string;
  readonly l2Promotion?: string;
  readonly oobFill?: string;
}

/** A tensor map as its 128 bytes; the address in them is replaced by that of the tensor. */
export interface EncodedTensorMapFile {
  readonly tensor: string;
  readonly byteOffset?: Amount;
  /** 256 hexadecimal digits. */
  readonly bytes: string;
}

/** A parameter in the form of the file: one of these members names its kind. */
export type ParameterFile =
  | { readonly kind: 'tensor'; readonly tensor: string; readonly byteOffset: Amount }
  | { readonly kind: 'scratch'; readonly bytes: Amount }
  | { readonly kind: 'scalar'; readonly type: ScalarKind; readonly value: Amount }
  | { readonly kind: 'struct'; readonly members: readonly ParameterFile[] }
  | { readonly kind: 'tensorMap'; readonly map: TensorMapFile }
  | { readonly kind: 'encodedTensorMap'; readonly map: EncodedTensorMapFile };

/** The file of a tensor that the kernel writes. */
export interface OutputFile {
  readonly name: string;
  /** The quantity of the problem that the output is; null where none is named. */
  readonly as: string | null;
  /** The format of its elements, where the problem's format does not apply. */
  readonly format: string | null;
}

/** A tensor that a template has besides those of the problem: one of its launches leaves it for another. */
export interface BufferFile {
  readonly name: string;
  /** The format of its elements. */
  readonly format: string;
  readonly shape: readonly Amount[];
  /** Whether it holds zeros before the first launch; otherwise it holds NaN. */
  readonly zeros: boolean;
}

/** A launch file as written, before any calculation. */
export interface LaunchFile {
  /** Paths beside the file; null for `kernel.ptx` and `tensors.safetensors`. */
  readonly ptx: string | null;
  readonly tensors: string | null;
  readonly entry: string;
  readonly grid: readonly Amount[];
  /** Null where the entry's `.reqntid` or `.reqnctapercluster` applies. */
  readonly block: readonly Amount[] | null;
  readonly cluster: readonly Amount[] | null;
  readonly dynamicSharedBytes: Amount;
  readonly parameters: readonly ParameterFile[];
  readonly outputs: readonly OutputFile[];
  /** Formats of the problems that a template supports; null for any. */
  readonly formats: readonly string[] | null;
  /** Expressions that must not be 0 for a problem that a template supports. */
  readonly requires: readonly string[];
  /** The path, beside the file, of the launch that follows this one; null for none. */
  readonly next: string | null;
  readonly buffers: readonly BufferFile[];
  /** What the flat buffers are; null where it is not said. */
  readonly contract: ContractFile | null;
}

/** Maximum nesting depth of structs. */
const deepest = 20;

/** Reads a parameter that the schemas allow. */
function readParameter(value: object, where: string, checks: Checks, depth = 0): ParameterFile {
  const fail = (problem: string): never => {
    throw new RequestError(`${where} ${problem}`);
  };
  const kinds = Object.keys(value).filter((member) => parameterKinds.includes(member));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1)
    return fail(
      `is {${plainText(Object.keys(value).join(', ').slice(0, 80))}}; give one of ${parameterKinds.join(', ')}`,
    );
  const check = checks.parameters.get(kind);
  if (check !== undefined && !check(value))
    fail(`is wrong: ${violationOf(check.errors, `a ${kind}`)}`);
  const members = value as Readonly<Record<string, never>>;
  if (kind === 'tensor')
    return { kind, tensor: members.tensor, byteOffset: members.byteOffset ?? 0 };
  if (kind === 'scratch') return { kind, bytes: members.scratch };
  if (kind === 'tensorMap') return { kind, map: members.tensorMap };
  if (kind === 'encodedTensorMap') return { kind, map: members.encodedTensorMap };
  if (kind !== 'struct') return { kind: 'scalar', type: kind as ScalarKind, value: members[kind] };
  if (depth === deepest) fail(`is a struct of more than ${deepest} levels`);
  return {
    kind,
    members: (members.struct as readonly object[]).map((member, i) =>
      readParameter(member, `${where}.struct[${i}]`, checks, depth + 1),
    ),
  };
}

function readOutput(
  output: string | { name: string; as?: string; format?: string },
  quantities: readonly string[],
): OutputFile {
  if (typeof output === 'string') return { name: output, as: null, format: null };
  const as = quantities.find((quantity) => quantity === output.as);
  if (output.as !== undefined && as === undefined)
    throw new RequestError(
      `output "${plainText(output.name)}" is given as "${plainText(output.as)}"; give one of ${quantities.join(', ')}`,
    );
  return { name: output.name, as: as ?? null, format: output.format ?? null };
}

/** The contract of a launch file. @throws RequestError for one that is wrong */
function contractOf(
  value: object | undefined,
  checks: Checks,
  names: ContractNames,
): ContractFile | null {
  if (value === undefined) return null;
  try {
    return readContract(value, checks, names);
  } catch (error) {
    if (error instanceof RequestError) throw new RequestError(`contract: ${error.message}`);
    throw error;
  }
}

/** An error that begins with a file's name. */
function inFile(error: unknown, fileName: string): unknown {
  return error instanceof RequestError
    ? new RequestError(`${plainText(fileName)}: ${error.message}`)
    : error;
}

/**
 * Reads the text of a contract, which says what the flat buffers of a launch are.
 *
 * @param names the tensors that it may have
 * @throws RequestError with one line that begins with `fileName`, where the text is no contract
 */
export async function parseContract(
  text: string,
  fileName: string,
  names: ContractNames,
): Promise<ContractFile> {
  const checks = await loadChecks();
  try {
    return readContract(parseJson(text), checks, names);
  } catch (error) {
    throw inFile(error, fileName);
  }
}

/**
 * Reads a launch file, which describes the launch of a compiled kernel in the terms of the CUDA
 * driver.
 *
 * @param quantities the quantities that outputs may be
 * @param contractNames the tensors that a contract may have; default none
 * @throws RequestError with one line that begins with `fileName`, where the text is not a launch
 * file
 */
export async function parseLaunchFile(
  text: string,
  fileName: string,
  quantities: readonly string[],
  contractNames: ContractNames = { attention: [], recurrent: [] },
): Promise<LaunchFile> {
  const checks = await loadChecks();
  try {
    const value = parseJson(text);
    if (!checks.file(value)) throw new RequestError(violationOf(checks.file.errors, 'the file'));
    const file = value as Readonly<Record<string, never>>;
    return {
      ptx: file.ptx ?? null,
      tensors: file.tensors ?? null,
      entry: file.entry,
      grid: file.grid,
      block: file.block ?? null,
      cluster: file.cluster ?? null,
      dynamicSharedBytes: file.dynamicSharedBytes ?? 0,
      parameters: (file.parameters as readonly object[]).map((parameter, i) =>
        readParameter(parameter, `parameters[${i}]`, checks),
      ),
      outputs: (file.outputs as readonly string[]).map((output) => readOutput(output, quantities)),
      formats: file.formats ?? null,
      requires: file.requires ?? [],
      next: file.next ?? null,
      buffers: ((file.buffers ?? []) as readonly BufferFile[]).map((buffer) => ({
        ...buffer,
        zeros: (buffer as Partial<BufferFile>).zeros ?? false,
      })),
      contract: contractOf(file.contract, checks, contractNames),
    };
  } catch (error) {
    throw inFile(error, fileName);
  }
}
