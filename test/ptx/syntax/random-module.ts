import fc from 'fast-check';
import type {
  Initialiser,
  Operand,
  PtxFunction,
  PtxModule,
  Statement,
  VariableDeclaration,
} from '../../../src/ptx/syntax/index.js';

/** Where something stands plays no part. */
const place = { line: 0, column: 0 };

const name = fc.oneof(
  fc.stringMatching(/^[a-z][a-z0-9_$]{0,8}$/).filter((text) => text !== 'generic'),
  fc.stringMatching(/^[$%_][a-z0-9_$]{1,8}$/),
);
const register = fc.oneof(name, fc.constantFrom('%tid.x', '%ctaid.y', 'v.w'));
const bits = (width: number) => fc.bigInt({ min: 0n, max: 2n ** BigInt(width) - 1n });
const offset = fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n });

const plain: fc.Arbitrary<Operand> = fc.oneof(
  register.map((text) => ({ kind: 'name' as const, name: text, place })),
  fc.record({ kind: fc.constant('sum' as const), name, offset, place: fc.constant(place) }),
  fc
    .oneof(offset, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }))
    .map((value) => ({ kind: 'integer' as const, value, place })),
  bits(32).map((value) => ({ kind: 'float' as const, format: 'f32' as const, bits: value, place })),
  bits(64).map((value) => ({ kind: 'float' as const, format: 'f64' as const, bits: value, place })),
  fc.constant({ kind: 'sink' as const, place }),
);
const named = register.map((text) => ({ kind: 'name' as const, name: text, place }));
const some = fc.array(plain, { maxLength: 5 });

const operand: fc.Arbitrary<Operand> = fc.oneof(
  plain,
  fc.record({
    kind: fc.constant('address' as const),
    base: fc.option(register),
    offset,
    coordinates: fc.array(some, { maxLength: 2 }),
    place: fc.constant(place),
  }),
  some.map((elements) => ({ kind: 'vector' as const, elements, place })),
  fc
    .tuple(named, named)
    .map(([first, second]) => ({ kind: 'pair' as const, first, second, place })),
  named.map((predicate) => ({ kind: 'negated' as const, operand: predicate, place })),
);

const modifier = fc.oneof(
  fc.constantFrom('u32', 'sync', '16x256b', 'shared::cta', 'mbarrier::complete_tx::bytes'),
  fc.stringMatching(/^[a-z0-9_]{1,6}$/),
);
const instruction: fc.Arbitrary<Statement> = fc
  .record({
    guard: fc.option(fc.record({ predicate: name, isNegated: fc.boolean() })),
    opcode: fc.stringMatching(/^[a-z][a-z0-9]{0,6}$/),
    modifiers: fc.array(modifier, { maxLength: 4 }),
    operands: fc.array(operand, { maxLength: 4 }),
    isCall: fc.boolean(),
    listed: fc.array(named, { maxLength: 3 }),
  })
  .map(({ isCall, listed, ...rest }) => ({
    ...rest,
    kind: 'instruction' as const,
    opcode: isCall ? 'call' : rest.opcode,
    operands: isCall
      ? [{ kind: 'list' as const, elements: listed, place }, ...rest.operands]
      : rest.operands,
    place,
  }));

const types = ['b8', 'u16', 's32', 'b64', 'f32', 'f64', 'pred', 'f16x2', 'b128'] as const;
const widths = { b8: 8, u16: 16, s32: 32, b64: 64, f32: 32, f64: 64, pred: 1, f16x2: 0, b128: 64 };

const initialiserOf = (type: (typeof types)[number]): fc.Arbitrary<Initialiser | null> => {
  if (widths[type] === 0) return fc.constant(null);
  const one: fc.Arbitrary<Initialiser> = fc.oneof(
    bits(widths[type]).map((value) => ({ kind: 'bits' as const, bits: value })),
    fc.record({
      kind: fc.constant('address' as const),
      name,
      offset,
      isGeneric: fc.boolean(),
      mask: fc.option(bits(63)),
    }),
  );
  const list = (element: fc.Arbitrary<Initialiser>) =>
    fc.array(element, { maxLength: 4 }).map((elements) => ({ kind: 'list' as const, elements }));
  return fc.option(fc.oneof(one, list(one), list(list(one))));
};

const declaration = (
  spaces: readonly VariableDeclaration['space'][],
): fc.Arbitrary<VariableDeclaration> =>
  fc.constantFrom(...types).chain((type) =>
    fc.record({
      kind: fc.constant('variable' as const),
      name,
      space: fc.constantFrom(...spaces),
      type: fc.constant(type),
      vector: fc.constantFrom(1, 2, 4),
      alignment: fc.option(fc.constantFrom(1, 8, 128)),
      dimensions: fc.array(fc.option(fc.nat(2 ** 30)), { maxLength: 3 }),
      count: fc.constant(null),
      initialiser: spaces.includes('param') ? fc.constant(null) : initialiserOf(type),
      linkage: fc.constant(null),
      pointer: fc.constant(null),
      place: fc.constant(place),
    }),
  );
const registers: fc.Arbitrary<VariableDeclaration> = declaration(['reg']).chain((variable) =>
  fc.option(fc.nat(5000)).map((count) => ({
    ...variable,
    count,
    dimensions: [],
    initialiser: null,
  })),
);
const pointer = fc.option(
  fc.record({
    space: fc.option(fc.constantFrom('global' as const, 'shared' as const)),
    alignment: fc.option(fc.constantFrom(1, 16)),
  }),
);
const parameter: fc.Arbitrary<VariableDeclaration> = fc
  .tuple(declaration(['param']), pointer)
  .map(([variable, pointsTo]) => ({ ...variable, pointer: pointsTo }));
const parameters = fc.array(parameter, { maxLength: 3 });
const names = fc.array(name, { minLength: 1, maxLength: 3 });

const { statement } = fc.letrec<{ statement: Statement }>((tie) => ({
  statement: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'block' },
    instruction,
    registers,
    declaration(['shared', 'local']),
    name.map((label) => ({ kind: 'label' as const, name: label, place })),
    fc.tuple(fc.nat(), fc.nat(), fc.nat()).map(([file, line, column]) => ({
      kind: 'location' as const,
      file,
      line,
      column,
      inlinedAt: null,
      place,
    })),
    fc
      .tuple(name, names)
      .map(([list, labels]) => ({ kind: 'branch-targets' as const, name: list, labels, place })),
    fc.tuple(name, names).map(([list, functions]) => ({
      kind: 'call-targets' as const,
      name: list,
      functions,
      place,
    })),
    fc.tuple(name, parameters, parameters).map(([list, returns, takes]) => ({
      kind: 'call-prototype' as const,
      name: list,
      returns,
      parameters: takes,
      place,
    })),
    fc.array(tie('statement'), { maxLength: 4, depthIdentifier: 'block' }).map((statements) => ({
      kind: 'block' as const,
      statements,
      place,
    })),
  ),
}));

const linkage = fc.constantFrom(null, 'extern' as const, 'visible' as const, 'weak' as const);
const routine: fc.Arbitrary<PtxFunction> = fc
  .record({
    kind: fc.constantFrom('entry' as const, 'func' as const),
    name,
    linkage,
    returns: parameters,
    parameters,
    directives: fc
      .array(
        fc.tuple(
          fc.constantFrom('maxntid', 'reqntid', 'maxnreg', 'explicitcluster'),
          fc.array(fc.nat(), { maxLength: 3 }),
        ),
        { maxLength: 3 },
      )
      .map((entries) => new Map(entries)),
    body: fc.option(fc.array(statement, { maxLength: 8 })),
    place: fc.constant(place),
  })
  .map((one) => (one.kind === 'entry' ? { ...one, returns: [] } : one));

/** Modules of every kind of item, statement and operand that the grammar has. */
export const randomModule: fc.Arbitrary<PtxModule> = fc.record({
  version: fc.record({ major: fc.nat(9), minor: fc.nat(9) }),
  target: fc.constantFrom('sm_80', 'sm_90a', 'sm_103a'),
  targetOptions: fc.subarray(['debug', 'texmode_independent']),
  addressSize: fc.constantFrom(32, 64),
  variables: fc.array(
    fc
      .tuple(declaration(['global', 'const', 'shared']), linkage)
      .map(([variable, linked]) => ({ ...variable, linkage: linked })),
    { maxLength: 4 },
  ),
  functions: fc.array(routine, { maxLength: 3 }),
  aliases: fc.array(fc.tuple(name, name), { maxLength: 2 }).map((pairs) => new Map(pairs)),
  files: fc
    .array(fc.tuple(fc.nat(99), fc.stringMatching(/^[a-z/.]{0,12}$/)), { maxLength: 2 })
    .map((pairs) => new Map(pairs)),
});
