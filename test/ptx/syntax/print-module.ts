import type {
  Initialiser,
  Operand,
  PtxFunction,
  PtxModule,
  Statement,
  VariableDeclaration,
} from '../../../src/ptx/syntax/index.js';

const offsetText = (offset: bigint) => (offset < 0n ? `-${-offset}` : `+${offset}`);
const hexadecimal = (bits: bigint, digits: number) => bits.toString(16).padStart(digits, '0');

function operandText(operand: Operand): string {
  const list = (elements: readonly Operand[]) => elements.map(operandText).join(', ');
  switch (operand.kind) {
    case 'name':
      return operand.name;
    case 'sum':
      return operand.name + offsetText(operand.offset);
    case 'integer':
      return String(operand.value);
    case 'float':
      return operand.format === 'f32'
        ? `0f${hexadecimal(operand.bits, 8)}`
        : `0D${hexadecimal(operand.bits, 16)}`;
    case 'address': {
      const { base, offset, coordinates } = operand;
      const sum = base === null ? String(offset) : base + offsetText(offset);
      return `[${[sum, ...coordinates.map((one) => `{${list(one)}}`)].join(', ')}]`;
    }
    case 'vector':
      return `{${list(operand.elements)}}`;
    case 'list':
      return `(${list(operand.elements)})`;
    case 'pair':
      return `${operandText(operand.first)} | ${operandText(operand.second)}`;
    case 'negated':
      return `!${operandText(operand.operand)}`;
    case 'sink':
      return '_';
  }
}

function initialiserText(initialiser: Initialiser, type: string): string {
  if (initialiser.kind === 'list')
    return `{${initialiser.elements.map((one) => initialiserText(one, type)).join(',')}}`;
  if (initialiser.kind === 'bits') {
    if (type === 'f32') return `0f${hexadecimal(initialiser.bits, 8)}`;
    return type === 'f64' ? `0d${hexadecimal(initialiser.bits, 16)}` : String(initialiser.bits);
  }
  const { name, offset, isGeneric, mask } = initialiser;
  const sum = name + offsetText(offset);
  const address = isGeneric ? `generic(${sum})` : sum;
  return mask === null ? address : `${mask}(${address})`;
}

function variableText(variable: VariableDeclaration): string {
  const { space, alignment, vector, type, pointer, name, count, dimensions, initialiser } =
    variable;
  return [
    ...(variable.linkage === null ? [] : [`.${variable.linkage}`]),
    `.${space}`,
    ...(alignment === null ? [] : [`.align ${alignment}`]),
    ...(vector === 1 ? [] : [`.v${vector}`]),
    `.${type}`,
    ...(pointer === null ? [] : ['.ptr']),
    ...(pointer === null || pointer.space === null ? [] : [`.${pointer.space}`]),
    ...(pointer === null || pointer.alignment === null ? [] : [`.align ${pointer.alignment}`]),
    name +
      (count === null ? '' : `<${count}>`) +
      dimensions.map((one) => `[${one ?? ''}]`).join(''),
    ...(initialiser === null ? [] : [`= ${initialiserText(initialiser, type)}`]),
  ].join(' ');
}

const parametersText = (parameters: readonly VariableDeclaration[]) =>
  `(${parameters.map(variableText).join(',\n')})`;

function statementText(statement: Statement): string {
  switch (statement.kind) {
    case 'instruction': {
      const { guard, opcode, modifiers, operands } = statement;
      const before = guard === null ? '' : `@${guard.isNegated ? '!' : ''}${guard.predicate} `;
      return `${before}${[opcode, ...modifiers].join('.')} ${operands.map(operandText).join(', ')};`;
    }
    case 'variable':
      return `${variableText(statement)};`;
    case 'label':
      return `${statement.name}:`;
    case 'block':
      return `{\n${statement.statements.map(statementText).join('\n')}\n}`;
    case 'location':
      return `.loc ${statement.file} ${statement.line} ${statement.column}`;
    case 'branch-targets':
      return `${statement.name}: .branchtargets ${statement.labels.join(', ')};`;
    case 'call-targets':
      return `${statement.name}: .calltargets ${statement.functions.join(', ')};`;
    case 'call-prototype': {
      const { name, returns, parameters } = statement;
      return `${name}: .callprototype ${parametersText(returns)} _ ${parametersText(parameters)};`;
    }
  }
}

function functionText(one: PtxFunction): string {
  const { kind, name, linkage, returns, parameters, directives, body } = one;
  return [
    ...(linkage === null ? [] : [`.${linkage}`]),
    `.${kind}`,
    ...(kind === 'func' ? [parametersText(returns)] : []),
    `${name}${parametersText(parameters)}`,
    ...[...directives].map(([directive, numbers]) => `.${directive} ${numbers.join(', ')}`),
    body === null ? ';' : `{\n${body.map(statementText).join('\n')}\n}`,
  ].join(' ');
}

/** A module as text that the parser reads. */
export function printModule(module: PtxModule): string {
  const { version, target, targetOptions, addressSize, variables, functions, aliases, files } =
    module;
  return [
    `.version ${version.major}.${version.minor}`,
    `.target ${[target, ...targetOptions].join(', ')}`,
    `.address_size ${addressSize}`,
    ...[...files].map(([number, name]) => `.file ${number} "${name}"`),
    ...variables.map((variable) => `${variableText(variable)};`),
    ...functions.map(functionText),
    ...[...aliases].map(([alias, name]) => `.alias ${alias}, ${name};`),
  ].join('\n');
}
