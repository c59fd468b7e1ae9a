import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';
import { atLeastOne } from '../options/parse-values.js';
import { computingOptions, launchFileOptions } from '../options/shared-options.js';

/** The options of `flashproof certify`. */
export const certifyOptions = optionRows({
  same: {
    argument: '<file>',
    description: 'another launch file: say which outputs have the same bits for all inputs (below)',
  },
  contract: {
    argument: '<file>',
    description: 'what the tensors are (JSON), where the launch file does not say',
  },
  ...launchFileOptions,
  ...computingOptions,
  schedules: {
    argument: '<n>',
    description: 'run n random schedules too: say which outputs have the same bits in all',
    parse: atLeastOne,
  },
  samples: {
    argument: '<n>',
    description: 'elements of an output whose error is attributed to lines (default: 256)',
    parse: atLeastOne,
  },
  lines: { description: 'list all decisions, losses and shares of the error, not the largest' },
  json: {
    argument: '<file>',
    description: 'write the certificate as JSON (- for stdout)',
    stdout: true,
  },
  html: {
    argument: '<file>',
    description: 'write the certificate as a page, with the lines of the program',
  },
  source: {
    argument: '<file>',
    description: 'a source that the PTX was compiled from: the page shows its lines (repeatable)',
    repeats: true,
    needs: { oneOf: ['html'], says: '--source is shown on the page; add --html' },
  },
  quiet: { short: 'q', description: 'print the verdict only' },
});

/** The options of `flashproof certify` as they are given. */
export type CertifyCommandOptions = ParsedOptions<typeof certifyOptions>;

const details = `
Examples:
  flashproof certify launch.json
  flashproof certify launch.json --lines --json certificate.json
  flashproof certify launch.json --same launch.json
  flashproof certify template.json --problem problem.safetensors

The kernel runs as with flashproof run, while every value carries what it means:
the real number that it would be without any rounding, and the expression that
made it. A certificate says, in this order: whether memory and order are sound;
how many elements of each output have a meaning; where the launch file has a
contract, whether their real values are those of the contract; which lines make
how much of their error; with --same whether their bits equal another launch's
for all inputs; and of what it says nothing.

Several launches (0/launch.json 1/launch.json) are a chain, and so is one whose
file names a next: each begins with the tensors as those before it left them,
values and meanings. Tensors of one name are one buffer. The contract is that of
the last launch that has one, or --contract, and names the outputs; places say
of which launch they are. --ptx and --tensors are those of the first launch.

--same compares expressions, not bits: equal ones give equal bits for all inputs
for which the decisions are the same. Inputs of the same name stand for one
another; where both launches say what their tensors are, rows of the same query,
keys and values do, in any batch, place or stride. --ptx and --tensors are not
those of the other; --problem is that of both, where both are templates.

--schedules n runs the launch n times more, warps and clusters taking turns by
chance, and compares expressions likewise: sums by atomics show, though their
bits may agree.

Exit status: 0 certified, 1 refuted, or incomplete: values are lost, were never
written or could not be compared, 2 the request is wrong.`;

/** `flashproof certify`. */
export const certifyCommand = commandRow({
  name: 'certify',
  description: 'say what a compiled kernel (PTX) proves by its own run',
  arguments: [
    {
      syntax: '<launch...>',
      description: 'launch file (JSON), and those of the launches that follow it',
      completes: 'path',
    },
  ],
  options: certifyOptions,
  details,
});
