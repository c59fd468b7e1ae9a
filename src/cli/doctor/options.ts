import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';

const doctorOptions = optionRows({
  json: {
    argument: '<file>',
    description: 'write the result as JSON (- for standard output)',
    stdout: true,
  },
  quiet: { short: 'q', description: 'print the verdict only' },
});

/** The options of `flashproof doctor` as they are given. */
export type DoctorCommandOptions = ParsedOptions<typeof doctorOptions>;

const details = `
Needed are Node.js and WebAssembly SIMD; the rest is for live kernels, for
dumping and for compiling. Nothing is installed and nothing is sent.

Examples:
  flashproof doctor
  flashproof doctor --json doctor.json

Exit status: 0 all that flashproof needs is here, 1 something is not, 2 the
request is wrong.`;

/** `flashproof doctor`. */
export const doctorCommand = commandRow({
  name: 'doctor',
  description: 'say what of this machine is usable: Node.js, cores, memory, Python, GPU tools',
  arguments: [],
  options: doctorOptions,
  details,
});
