import { commandRow } from '../options/command-rows.js';
import { optionRows } from '../options/option-rows.js';

const details = `
Each line of standard input is a request, a JSON object: id, any number or text,
and args, the words of a command line. Requests are carried out one after the
other; each is answered by a line on standard output with its id, the exit
status, and what the command wrote (stdout, stderr). Tensors pass through files.
The server ends with its input.

Examples:
  flashproof serve < requests.jsonl
  flashproof serve < requests.jsonl > answers.jsonl

A line of requests.jsonl:
  {"id":1,"args":["audit","/tmp/dump.safetensors","--json","-"]}

Exit status: 0 standard input has ended, 2 the request is wrong.`;

/** `flashproof serve`. */
export const serveCommand = commandRow({
  name: 'serve',
  description: 'carry out commands that come on standard input, for other programs',
  arguments: [],
  options: optionRows({}),
  details,
});
