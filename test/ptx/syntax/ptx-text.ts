import { type PtxInstruction, type PtxModule, parsePtx } from '../../../src/ptx/syntax/index.js';
import { RequestError } from '../../../src/request-error.js';

/** What every module begins with. */
const head = '.version 8.7\n.target sm_90a\n.address_size 64\n';

/** The module that these items make. */
export function moduleOf(items: string): PtxModule {
  return parsePtx(head + items, 'kernel.ptx');
}

/** The statements of a kernel. */
export function statementsOf(body: string) {
  const { body: statements } = moduleOf(`.entry k() {\n${body}\n}`).functions[0] ?? {};
  if (statements === undefined || statements === null) throw new Error('the kernel has no body');
  return statements;
}

/** An instruction, the `;` included. */
export function instructionOf(text: string): PtxInstruction {
  const [statement] = statementsOf(text);
  if (statement?.kind !== 'instruction') throw new Error(`not an instruction: ${text}`);
  return statement;
}

/** The value without what says where it stands: `place` is taken off all over. */
export function withoutPlaces(value: unknown): unknown {
  if (value instanceof Map) return new Map([...value].map(([k, v]) => [k, withoutPlaces(v)]));
  if (Array.isArray(value)) return value.map(withoutPlaces);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'place')
      .map(([name, member]) => [name, withoutPlaces(member)]),
  );
}

/** The message with which a text is refused. @throws whatever else is thrown, and where it is not refused */
export function refusalOf(text: string): string {
  try {
    parsePtx(text, 'kernel.ptx');
  } catch (error) {
    if (error instanceof RequestError) return error.message;
    throw error;
  }
  throw new Error(`not refused: ${text}`);
}
