import { RequestError } from '../request-error.js';
import { printable } from './tensors/index.js';

/** Meanings of the operating system's error codes for a user, each with a remedy. */
const meanings: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder; check the path',
  ENOTDIR: 'a part of the path is a file, not a folder; check the path',
  EISDIR: 'the path is a folder; name a file',
  EACCES: 'permission denied; check the permissions of the file and of its folder',
  EPERM: 'the operation is not permitted; check the permissions and the owner of the file',
  EROFS: 'the file system is read-only; choose a folder that can be written',
  EMFILE: 'this process has too many open files; close some, or raise the limit (ulimit -n)',
  ENFILE: 'the system has too many open files; close some programs and try again',
  ENOSPC: 'no space is left on the device; free some, or choose another folder',
  EDQUOT: 'the disk quota is used up; free some space, or choose another folder',
  EFBIG: 'the file would be larger than the file system allows; choose another folder',
  ENAMETOOLONG: 'the path is too long; choose a shorter one',
  ELOOP: 'the path goes round a loop of symbolic links; name the file itself',
  EBUSY: 'the file is in use; close the program that holds it and try again',
  ETXTBSY: 'the file is being executed; choose another path',
  EIO: 'the device reported an input/output error; check the disk, or copy the file afresh',
  ESTALE: 'the network file system lost the file; mount it again',
  ENXIO: 'there is no device behind the path; name a regular file',
  ENOMEM: 'the system has no memory left; close some programs and try again',
  ERR_INVALID_ARG_VALUE: 'the path holds a zero byte; check the path',
  ERR_FS_FILE_TOO_LARGE: 'the file is too large to be read at once; make it smaller',
};

/**
 * The RequestError for an error thrown by node:fs: one line with the path, the meaning of the error
 * code and how to mend it. A RequestError comes back as it is; an error that has no code is none of
 * the file system's and comes back as it is too.
 * @param path the file or folder that was being used
 * @param doing the attempted action, as in `cannot ${doing}`
 */
export function fileError(error: unknown, path: string, doing: string): Error {
  if (error instanceof RequestError) return error;
  if (!(error instanceof Error)) return new RequestError(`${printable(path)}: cannot ${doing}`);
  const code = (error as NodeJS.ErrnoException).code;
  if (typeof code !== 'string') return error;
  const meaning =
    (code === 'ENOENT' && /[*?]/.test(path)
      ? 'no file matches this pattern; check the folder and the name'
      : meanings[code]) ??
    `the system reported ${code} (${printable(error.message)}); check the path`;
  return new RequestError(`${printable(path)}: cannot ${doing}: ${meaning}`);
}
