# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The shared library of a build folder with one of its sources edited.

The commands are those of the build folder, as ninja tells them; neither the folder nor the tree
is written to. Only the edited source is compiled again. If a CMake unity file includes it, the
unity file's object is linked, too, with the symbols that the edited source defines made weak, so
that those of the edited source replace them. (Position-independent code calls functions that are
not inline by their symbols.)
"""
import functools
import json
import os
import re
import shlex
import subprocess

OBJECTS = re.compile(r'CMakeFiles/(?:rocksdb-shared|strata_shared)\.dir/(.+)\.o')
LIBRARY = re.compile(r'librocksdb[^/]*\.so\.[\d.]+')


class BuildError(Exception):
    """A build folder cannot be used, or an edited source does not compile."""


class CompileError(BuildError):
    """The compiler or the linker refused an edited source."""


def run(command, cwd):
    """Runs a command and returns what it printed; raises CompileError with the end of that."""
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors='replace')
    if done.returncode:
        raise CompileError('\n'.join(done.stdout.strip().split('\n')[-30:]))
    return done.stdout


class Build:
    """A build folder. Thread-safe once constructed."""
    NM, OBJCOPY = 'nm', 'objcopy'

    def __init__(self, root, folder, entries=None):
        """`entries` are those of `ninja -t compdb -x`, which is asked if there are none."""
        self.root = root
        self.folder = os.path.abspath(folder)
        if entries is None:
            entries = self.ask_ninja()
        self.compile_commands, links = {}, []
        for entry in entries:
            if OBJECTS.fullmatch(entry['output']) and ' -c ' in entry['command']:
                self.compile_commands[entry['output']] = entry
            elif LIBRARY.fullmatch(entry['output']) and ' -shared ' in entry['command']:
                links.append(entry)
        if len(links) != 1 or not self.compile_commands:
            raise BuildError(f'{folder}: {len(links)} commands link librocksdb, '
                             f'{len(self.compile_commands)} compile its objects')
        self.library = links[0]['output']
        self.link_words = self.words_of_link(links[0]['command'])
        self.soname = next((w.split(',')[-1] for w in self.link_words
                            if w.startswith('-Wl,-soname,')), self.library)

    def ask_ninja(self):
        done = subprocess.run(['ninja', '-C', self.folder, '-t', 'compdb', '-x'],
                              capture_output=True, text=True)
        if done.returncode:
            raise BuildError(f'{self.folder}: no build folder: {done.stderr.strip()}')
        # Older versions of ninja say on the same stream which directory they entered.
        return json.loads(done.stdout[done.stdout.index('['):])

    @staticmethod
    def words_of_link(command):
        """The linker's words of a rule that CMake wraps in ": && ... && :"."""
        for part in re.split(r'\s&&\s', command):
            words = shlex.split(part)
            if '-shared' in words:
                return words
        raise BuildError(f'no command links a shared library in: {command[:200]}')

    def require_up_to_date(self):
        """Raises BuildError if the library is missing, or older than one of its sources. (ninja's
        dry run does not tell: it ends with the check of the folders that CMake has listed.)"""
        library = os.path.join(self.folder, self.library)
        built = os.stat(library).st_mtime_ns if os.path.exists(library) else 0
        sources = [os.path.join(self.folder, entry['file'])
                   for entry in self.compile_commands.values()]
        sources += [os.path.join(self.root, 'build', 'src', path) for path in self.unities]
        newer = [path for path in sources
                 if os.path.exists(path) and os.stat(path).st_mtime_ns > built]
        if newer:
            raise BuildError(f'{library} is missing, or older than {newer[0]}. '
                             '"make debug" builds it')

    @functools.cached_property
    def unities(self):
        """{source, relative to the tree: the object of the unity file that includes it}."""
        found = {}
        for output, entry in self.compile_commands.items():
            if '/Unity/' not in output:
                continue
            with open(os.path.join(self.folder, entry['file']), encoding='utf-8') as f:
                for included in re.findall(r'^#include "([^"]+)"', f.read(), re.M):
                    found[self.in_tree(included)] = output
        return found

    def in_tree(self, path):
        """A path of a source as it is below build/src."""
        return os.path.relpath(os.path.join(self.folder, path),
                               os.path.join(self.root, 'build', 'src'))

    def object_of(self, source):
        """The object that holds a source, which is relative to the root. Raises BuildError."""
        for output, entry in self.compile_commands.items():
            if self.in_tree(entry['file']) == source:
                return output
        if source in self.unities:
            return self.unities[source]
        raise BuildError(f'{source} is in no object of {self.library}')

    def compile(self, source, text, out):
        """Compiles `source` with `text` in its place, to files in the folder `out`; returns (the
        object that they replace, their paths). Raises BuildError."""
        output = self.object_of(source)
        edited = os.path.join(out, 'src', source)
        self.write(edited, text)
        objects = [os.path.join(out, 'edited.o')]
        run(self.compile_words(self.compile_commands[output], source, edited, objects[0], out),
            self.folder)
        if output == self.unities.get(source):
            defined = run([self.NM, '--defined-only', '--extern-only', '--format=posix',
                           objects[0]], self.folder)
            names = os.path.join(out, 'names')
            self.write(names, ''.join(line.split()[0] + '\n' for line in defined.splitlines()))
            objects.append(os.path.join(out, 'rest.o'))
            run([self.OBJCOPY, f'--weaken-symbols={names}', output, objects[1]], self.folder)
        return output, objects

    def compile_words(self, entry, source, compiled, made, out):
        """The words that compile `compiled` to `made` as `entry` compiles its file."""
        words, keep = [], iter(shlex.split(entry['command']))
        for word in keep:
            if word in ('-MD', '-MMD'):
                continue
            if word in ('-MT', '-MF', '-MQ'):
                next(keep)
            elif word in ('-o', '-c'):
                next(keep)
                words += [word, made if word == '-o' else compiled]
            else:
                words.append(word)
        # Includes relative to the source's folder, and __FILE__, stay what they are in the tree.
        # Most of a bug's time is the compiler's, so it does not optimise.
        folder = os.path.join(self.root, 'build', 'src', os.path.dirname(source))
        return words + ['-O0', '-g0', '-iquote', folder,
                        f'-fmacro-prefix-map={os.path.join(out, "src")}/=']

    def link(self, replaced, objects, out):
        """Links the library into `out` with the given objects in place of `replaced`."""
        if replaced not in self.link_words:
            raise BuildError(f'{replaced} is not linked into {self.library}')
        at = self.link_words.index(replaced)
        words = self.link_words[:at] + objects + self.link_words[at + 1:]
        words[words.index('-o') + 1] = os.path.join(out, self.library)
        run(words, self.folder)
        if self.soname != self.library:
            os.symlink(self.library, os.path.join(out, self.soname))

    def library_environment(self, program, out):
        """The environment variables with which `program` loads the library in `out`. A program
        with an RPATH looks there before it looks at LD_LIBRARY_PATH, one with a RUNPATH after it.
        Raises BuildError if it does not load the library at all."""
        wanted = os.path.realpath(os.path.join(out, self.soname))
        folders = [out, *filter(None, [os.environ.get('LD_LIBRARY_PATH')])]
        for env in ({'LD_LIBRARY_PATH': ':'.join(folders)},
                    {'LD_PRELOAD': os.path.join(out, self.soname)}):
            loaded = re.findall(r'(/\S*librocksdb\S*\.so\S*) \(0x',
                                self.loaded_by(program, env))
            if [os.path.realpath(path) for path in loaded] == [wanted]:
                return env
        raise BuildError(f'{program} loads another library: {" ".join(loaded) or "none"}')

    @staticmethod
    def loaded_by(program, env, switch='LD_TRACE_LOADED_OBJECTS'):
        """What the dynamic linker says that it would load for `program`."""
        return subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, **env, switch: '1'}).stdout

    @staticmethod
    def write(path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
