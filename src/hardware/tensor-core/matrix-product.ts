import { RequestError } from '../../request-error.js';
import { checkOperandFormats, type TensorCoreArithmetic } from './arithmetic.js';
import { instructionChain, instructionSequences, type InstructionShape } from './instructions.js';
import type { Operand, OperandFormatName } from './operand.js';

/** Bit patterns, one per element. */
export type Patterns = ArrayLike<number>;

/** D = A·B + C of any size, all as bit patterns. */
export interface MatrixProduct extends InstructionShape {
  /** [m][k], in format `aFormat`. */
  readonly a: Patterns;
  readonly aFormat: OperandFormatName;
  /** [n][k]: one row for each column of B, as the matrix K of attention lies in memory. */
  readonly bTransposed: Patterns;
  readonly bFormat: OperandFormatName;
  /** [m][n], in the accumulator's format. */
  readonly c: Patterns;
  /** The K of the instructions; default the longest that there is. */
  readonly instructionLength?: number;
}

/**
 * D = A·B + C as tensor cores compute it, the bit patterns [m][n] in the accumulator's format: for
 * each element a chain of instructions in ascending k, which make `fusedDotProduct`s. This is the
 * definition, for reading and for checking; `createTensorCoreTile` gives the same bits much
 * faster. Throws a RequestError when an array has the wrong length, k does not fit the
 * instruction or the formats are not those of the arithmetic.
 */
export function tensorCoreProduct(
  arithmetic: TensorCoreArithmetic,
  product: MatrixProduct,
): Uint32Array {
  const { m, n, k, instructionLength } = product;
  const { length, instructions } = instructionChain(arithmetic, k, instructionLength);
  checkOperandFormats(arithmetic, product.aFormat, product.bFormat);
  checkLength('A', product.a, m, k);
  checkLength('B', product.bTransposed, n, k);
  checkLength('C', product.c, m, n);
  const { decode, execute } = instructionSequences[arithmetic.sequence];
  /** The operands in pieces of one instruction each. */
  const pieces = (format: OperandFormatName, patterns: Patterns): Operand[][] =>
    Array.from({ length: patterns.length / length }, (_, piece) =>
      Array.from({ length }, (_, i) => decode(format, patterns[piece * length + i])),
    );
  const rows = pieces(product.aFormat, product.a);
  const columns = pieces(product.bFormat, product.bTransposed);
  const d = Uint32Array.from(product.c);
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++)
      for (let s = 0; s < instructions; s++) {
        const [row, column] = [rows[i * instructions + s], columns[j * instructions + s]];
        d[i * n + j] = execute(arithmetic, row, column, d[i * n + j]);
      }
  return d;
}

function checkLength(name: string, patterns: Patterns, rows: number, columns: number): void {
  if (patterns.length !== rows * columns)
    throw new RequestError(
      `${name} has ${patterns.length} elements but ${rows} × ${columns} were announced; pass ${rows * columns}`,
    );
}
