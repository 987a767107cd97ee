# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Results as Markdown tables."""
from typing import Any, Dict, List, Optional

from strata_bench import metrics, scaling, stats
from strata_bench.experiments import PAPERS, Comparison, Experiment, Paper
from strata_bench.results import Document
from strata_bench.summary import Numbers, Summary, distance


def number(value: float, unit: str) -> str:
    """With three or four digits that mean something."""
    if unit == 'B':
        for limit, name in ((1e9, 'GB'), (1e6, 'MB'), (1e3, 'kB')):
            if abs(value) >= limit:
                return f'{value / limit:.2f} {name}'
        return f'{value:.0f} B'
    if abs(value) >= 100:
        text = f'{value:,.0f}'
    elif abs(value) >= 10:
        text = f'{value:.1f}'
    elif abs(value) >= 0.1 or value == 0:
        text = f'{value:.2f}'
    else:
        text = f'{value:.3g}'
    return f'{text} {unit}'.strip()


def _range(found: stats.Summary, unit: str) -> str:
    return f'{number(found.low, unit)} … {number(found.high, unit)}'


def _ratio(found: Optional[stats.Summary]) -> str:
    if found is None:
        return ''
    text = f'**{found.median:.2f}×**'
    if found.count > 1:
        text += f' ({found.low:.2f} … {found.high:.2f})'
    return text


def _paper(value: Optional[Paper]) -> str:
    if value is None:
        return ''
    return value if isinstance(value, str) else f'{value:.2f}×'


def row(cells: List[str]) -> str:
    return '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'


def comparison(experiment: Experiment, item: Comparison, summary: Summary) -> str:
    """One comparison: a row for each contender at each point."""
    numbers = Numbers(item, summary)
    unit = metrics.unit(item.metric)
    titles = summary['titles']
    swept = experiment.sweep is not None
    has_ratio = item.against in summary['contenders']
    has_paper = bool(item.paper)
    head = [experiment.sweep.parameter] if experiment.sweep else []
    head += ['contender', 'median', 'min … max', 'runs']
    if has_ratio:
        head.append(f'to {titles[item.against]}')
    if has_paper:
        head.append('paper')
    lines = [f'## {item.title}', '']
    if not numbers.measured:
        return '\n'.join(lines + ['Not measured yet: this comparison is newer than the results.'])
    lines += [row(head), row(['---'] * len(head))]
    for point in summary['points']:
        for contender in summary['contenders']:
            found = numbers.summary(point, contender)
            if found is None and _not_asked(summary, point, contender):
                continue
            cells = [point] if swept else []
            cells.append(titles[contender])
            if found is None:
                failed = _failed(summary, point, contender)
                cells += ['failed' if failed else 'no number', '', '0']
            else:
                cells += [number(found.median, unit), _range(found, unit), str(found.count)]
            if has_ratio:
                cells.append(_ratio(numbers.ratio(point, contender))
                             or _no_ratio(numbers, item, point, contender, unit))
            if has_paper:
                cells.append(_paper(item.paper_number(contender, point)))
            lines.append(row(cells))
    absent = [name for name in item.paper if name not in summary['contenders']]
    for name in absent:
        paper = item.paper[name]
        text = ', '.join(f'{point}: {_paper(value)}' for point, value in paper.items()) \
            if isinstance(paper, dict) else _paper(paper)
        lines += ['', f'Paper, for {name} (not measured here yet): {text}.']
    if item.note:
        lines += ['', item.note]
    for check in summary.get('checks', []):
        if check['title'] == item.title:
            where = f' at {check["point"]}' if check['point'] else ''
            lines += ['', f'Medians{where} {distance(check)}; the bound is '
                      f'{check["within"]:.0%}: {"held" if check["ok"] else "**not held**"}.']
    return '\n'.join(lines)


def _not_asked(summary: Summary, point: str, contender: str) -> bool:
    """The device itself neither writes nor has a database or a cache."""
    return summary.get('kinds', {}).get(contender) == 'fio' and not _failed(
        summary, point, contender)


def _no_ratio(numbers: Numbers, item: Comparison, point: str, contender: str, unit: str) -> str:
    """Where ratios are impossible, the medians, so that nothing drops out silently."""
    mine = numbers.summary(point, contender)
    base = numbers.summary(point, item.against or '')
    if contender == item.against or mine is None:
        return ''
    if base is None:
        return 'no ratio: the other has no number'
    return f'no ratio: {number(mine.median, unit)} to {number(base.median, unit)}'


def _failed(summary: Summary, point: str, contender: str) -> bool:
    return any(run['point'] == point and run['contender'] == contender
               for run in summary['failures'])


def size(value: float) -> str:
    return number(value, 'B')


def machine_line(machine: Dict[str, Any]) -> str:
    disk = machine.get('disk', {})
    parts = [machine.get('cpu', ''), f'{machine.get("cpus")} CPUs']
    if machine.get('memory_bytes'):
        parts.append(f'{machine["memory_bytes"] / (1 << 30):.0f} GiB of memory')
    parts += [machine.get('os', ''), machine.get('kernel', ''),
              ' '.join(text for text in (machine.get('file_system', ''), 'on',
                                         disk.get('model', '') or disk.get('device', ''))
                       if text)]
    if machine.get('halt_poll_nanos'):
        parts.append(f'idle CPUs poll for {machine["halt_poll_nanos"] / 1e3:g} µs')
    return ', '.join(part for part in parts if part)


def environment_line(summary: Summary) -> str:
    """The machine, and what the programs are built for where that is known."""
    line = machine_line(summary['machine'])
    programs = summary.get('programs', {})
    by_target: Dict[str, List[str]] = {}
    for name, program in programs.items():
        if program.get('built_for'):
            by_target.setdefault(program['built_for'], []).append(name)
    for target, names in by_target.items():
        of_some = f' ({", ".join(names)})' if len(by_target) > 1 else ''
        line += f', PORTABLE={target}{of_some}'
    return line


def dataset_line(summary: Summary) -> str:
    texts = []
    for item in summary['dataset'].values():
        text = (f'{item["records"]:,} records, keys of {item["key_size"]:g} and values of '
                f'{item["value_size"]:g} bytes, {size(item["bytes"])}, ')
        text += f'block cache {size(item["cache_size"])}' if item['cache_size'] else \
            'no block cache'
        if text not in texts:
            texts.append(text)
    if len(texts) > 3:
        return f'{texts[0]}; and {len(texts) - 1} more sizes'
    return '; '.join(texts)


def probe_line(summary: Summary) -> str:
    rates = summary.get('disk_reads_per_sec')
    if not rates:
        return ''
    return (f'The disk gave {rates["min"]:,.0f} … {rates["max"]:,.0f} random reads of 4 KiB per '
            'second before the pairs.')


def disturbance_line(summary: Summary) -> str:
    runs = summary['runs']
    if not runs['repeated'] and not runs['disturbed']:
        return ''
    return (f'**Disturbed:** while {max(runs["repeated"], runs["disturbed"])} of {runs["count"]} '
            f'runs were measured, others took more than {summary.get("max_foreign_cpu", 0.1):.0%} '
            f'of the CPUs; {runs["repeated"]} were repeated, {runs["disturbed"]} disturbed ones '
            'are among the numbers.')


def command_lines(document: Document) -> List[str]:
    """All commands: what they have in common, and what differs between points.

    Each pair, point and phase has another seed, so seeds are left out.
    """
    groups: Dict[Any, Dict[str, List[str]]] = {}
    for run in document['runs']:
        for phase, line in run['commands'].items():
            words = [word for word in line.split(' ') if not word.startswith('--seed=')]
            groups.setdefault((run['contender'], phase), {}).setdefault(run['point'], words)
    lines = []
    for (contender, phase), points in groups.items():
        every = list(points.values())
        common = [word for word in every[0] if all(word in words for words in every)]
        lines.append(f'# {contender}, {phase}')
        lines.append(' '.join(common))
        for point, words in points.items():
            rest = [word for word in words if word not in common]
            if rest:
                lines.append(f'    {point}: {" ".join(rest)}')
    return lines


def _about(definition: Experiment, summary: Summary, declaration: Optional[str]) -> List[str]:
    """What was measured, with what sizes, and what to know about the numbers."""
    lines = []
    if definition.paper != 'none':
        lines += [f'{PAPERS[definition.paper]}, {definition.figure}.', '']
    lines += [definition.summary, '']
    if definition.setup:
        lines += [f'*In the paper:* {definition.setup}', '']
    pairs = summary['pairs']
    rounds = 'rounds' if definition.recovery else 'pairs'
    lines += [f'*Here:* {dataset_line(summary)}; {pairs} {rounds}; scale '
              f'{summary["scale"]:g}.', '']
    if summary['state'] != 'complete':
        lines += [f'**Incomplete:** {summary["runs"]["count"]} of '
                  f'{pairs * len(summary["points"]) * len(summary["contenders"])} runs'
                  + (f', ended by: {summary["stopped_by"]}' if summary.get('stopped_by') else '')
                  + '.', '']
    if declaration is not None and summary.get('declaration') != declaration:
        lines += ['**Measured with an older declaration** of the experiment or its contenders.', '']
    if summary.get('factors'):
        lines += [f'*Smaller than in the paper by:* {scaling.text(summary["factors"])}.', '']
    if summary.get('templates'):
        count = summary['templates']
        lines += [f'The pairs start from {count} loaded {"databases" if count > 1 else "database"} '
                  + ('that all contenders share' if summary.get('loaded_by')
                     else 'of each contender') + (' in turn.' if 1 < count < pairs else '.'), '']
    lines += [f'Measured at {summary["started"]} on {environment_line(summary)}.', '']
    for text in (probe_line(summary), disturbance_line(summary)):
        if text:
            lines += [text, '']
    if summary.get('disturbed_runs_allowed'):
        lines += ['**Measured with --force:** the machine may have been busy.', '']
    return lines


def page(definition: Experiment, summary: Summary, plots: List[str],
         declaration: Optional[str] = None) -> str:
    """The page of an experiment, with names of plots beside it.

    `declaration` is the stamp of today's declaration.
    """
    lines = [f'# {definition.title}', '']
    lines += _about(definition, summary, declaration)
    for item in definition.comparisons:
        lines += [comparison(definition, item, summary), '']
    for name in plots:
        lines += [f'![{definition.title}]({name})', '']
    for name, reason in summary['skipped'].items():
        lines += [f'Not available yet: `{name}` ({reason}).', '']
    if summary['failures']:
        lines += ['Failed runs:', '']
        for run in summary['failures']:
            where = f', {run["point"]}' if run['point'] else ''
            text = run['error'].strip().replace('\n', '\n    ')
            lines += [f'* pair {run["pair"] + 1}, {run["contender"]}{where}:', '',
                      f'      {text}', '']
    if summary['state'] == 'complete':
        lines += [f'To repeat it: `bench/run {definition.name}`. The commands that ran are in '
                  '[commands.txt](commands.txt).', '']
    return '\n'.join(lines).rstrip() + '\n'


def commands_page(document: Document) -> str:
    """commands.txt: what ran, of the whole results."""
    return '\n'.join([f'# {document["experiment"]}, {document["started"]}. Each pair, point and '
                      'phase had another --seed.', *command_lines(document)]) + '\n'
