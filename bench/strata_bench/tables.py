# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Results as Markdown tables."""
from typing import Any, Dict, List, Optional

from strata_bench import metrics, results, scaling
from strata_bench.experiments import PAPERS, Comparison, Experiment, Paper
from strata_bench.results import Document, Numbers
from strata_bench.stats import Summary


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


def _range(summary: Summary, unit: str) -> str:
    return f'{number(summary.low, unit)} … {number(summary.high, unit)}'


def _ratio(summary: Optional[Summary]) -> str:
    if summary is None:
        return ''
    text = f'**{summary.median:.2f}×**'
    if summary.count > 1:
        text += f' ({summary.low:.2f} … {summary.high:.2f})'
    return text


def _paper(value: Optional[Paper]) -> str:
    if value is None:
        return ''
    return value if isinstance(value, str) else f'{value:.2f}×'


def _row(cells: List[str]) -> str:
    return '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'


def comparison(experiment: Experiment, item: Comparison, document: Document) -> str:
    """One comparison: a row for each contender at each point."""
    numbers = Numbers(item, document)
    unit = metrics.unit(item.metric)
    titles = document['titles']
    swept = experiment.sweep is not None
    has_ratio = item.against in document['contenders']
    has_paper = bool(item.paper)
    head = [experiment.sweep.parameter] if experiment.sweep else []
    head += ['contender', 'median', 'min … max', 'runs']
    if has_ratio:
        head.append(f'to {titles[item.against]}')
    if has_paper:
        head.append('paper')
    lines = [f'### {item.title}', '', _row(head), _row(['---'] * len(head))]
    for point in document['points']:
        for contender in document['contenders']:
            summary = numbers.summary(point, contender)
            if summary is None and _not_asked(document, point, contender):
                continue
            cells = [point] if swept else []
            cells.append(titles[contender])
            if summary is None:
                failed = _failed(document, point, contender)
                cells += ['failed' if failed else 'no number', '', '0']
            else:
                cells += [number(summary.median, unit), _range(summary, unit), str(summary.count)]
            if has_ratio:
                cells.append(_ratio(numbers.ratio(point, contender))
                             or _no_ratio(numbers, item, point, contender, unit))
            if has_paper:
                cells.append(_paper(item.paper_number(contender, point)))
            lines.append(_row(cells))
    absent = [name for name in item.paper if name not in document['contenders']]
    for name in absent:
        paper = item.paper[name]
        text = ', '.join(f'{point}: {_paper(value)}' for point, value in paper.items()) \
            if isinstance(paper, dict) else _paper(paper)
        lines += ['', f'Paper, for {name} (not measured here yet): {text}.']
    if item.note:
        lines += ['', item.note]
    for check in document.get('checks', []):
        if check['title'] == item.title:
            where = f' at {check["point"]}' if check['point'] else ''
            lines += ['', f'Medians{where} {results.distance(check)}; the bound is '
                      f'{check["within"]:.0%}: {"held" if check["ok"] else "**not held**"}.']
    return '\n'.join(lines)


def _not_asked(document: Document, point: str, contender: str) -> bool:
    """The device itself neither writes nor has a database or a cache."""
    return document.get('kinds', {}).get(contender) == 'fio' and not _failed(
        document, point, contender)


def _no_ratio(numbers: Numbers, item: Comparison, point: str, contender: str, unit: str) -> str:
    """Where ratios are impossible, the medians, so that nothing drops out silently."""
    mine = numbers.summary(point, contender)
    base = numbers.summary(point, item.against or '')
    if contender == item.against or mine is None:
        return ''
    if base is None:
        return 'no ratio: the other has no number'
    return f'no ratio: {number(mine.median, unit)} to {number(base.median, unit)}'


def _failed(document: Document, point: str, contender: str) -> bool:
    return any(run['point'] == point and run['contender'] == contender and run['error']
               for run in document['runs'])


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


def environment_line(document: Document) -> str:
    """The machine, and what the programs are built for where that is known."""
    line = machine_line(document['machine'])
    programs = document.get('programs', {})
    by_target: Dict[str, List[str]] = {}
    for name, program in programs.items():
        if program.get('built_for'):
            by_target.setdefault(program['built_for'], []).append(name)
    for target, names in by_target.items():
        of_some = f' ({", ".join(names)})' if len(by_target) > 1 else ''
        line += f', PORTABLE={target}{of_some}'
    return line


def dataset_line(document: Document) -> str:
    texts = []
    for item in document['dataset'].values():
        text = (f'{item["records"]:,} records, keys of {item["key_size"]:g} and values of '
                f'{item["value_size"]:g} bytes, {size(item["bytes"])}, ')
        text += f'block cache {size(item["cache_size"])}' if item['cache_size'] else \
            'no block cache'
        if text not in texts:
            texts.append(text)
    if len(texts) > 3:
        return f'{texts[0]}; and {len(texts) - 1} more sizes'
    return '; '.join(texts)


def probe_line(document: Document) -> str:
    rates = [item['reads_per_sec'] for item in document.get('probes', [])
             if 'reads_per_sec' in item]
    if not rates:
        return ''
    return (f'The disk gave {min(rates):,.0f} … {max(rates):,.0f} random reads of 4 KiB per second '
            'before the pairs.')


def disturbance_line(document: Document) -> str:
    repeated = sum('repeated_for_foreign_cpu' in run for run in document['runs'])
    disturbed = sum(bool(run.get('disturbed')) for run in document['runs'])
    if not repeated and not disturbed:
        return ''
    return (f'**Disturbed:** while {max(repeated, disturbed)} of {len(document["runs"])} runs were '
            f'measured, others took more than {document.get("max_foreign_cpu", 0.1):.0%} of the '
            f'CPUs; {repeated} were repeated, '
            f'{disturbed} disturbed ones are among the numbers.')


def command_lines(document: Document) -> List[str]:
    """All commands: what they have in common, and what differs between points.

    Seeds differ between all and are left to results.json.
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


def experiment(definition: Experiment, document: Document, plots: List[str],
               prefix: str = '', declaration: Optional[str] = None) -> str:
    """The whole page of an experiment. `prefix` is put before the plots' names.

    `declaration` is the stamp of today's declaration.
    """
    lines = [f'## {definition.title}', '']
    if definition.paper != 'none':
        lines += [f'{PAPERS[definition.paper]}, {definition.figure}.', '']
    lines += [definition.summary, '']
    if definition.setup:
        lines += [f'*In the paper:* {definition.setup}', '']
    pairs = document['pairs']
    rounds = 'rounds' if definition.recovery else 'pairs'
    lines += [f'*Here:* {dataset_line(document)}; {pairs} {rounds}; scale '
              f'{document["scale"]:g}.', '']
    if document['state'] != 'complete':
        lines += [f'**Incomplete:** {len(document["runs"])} of '
                  f'{pairs * len(document["points"]) * len(document["contenders"])} runs'
                  + (f', ended by: {document["stopped_by"]}' if document.get('stopped_by') else '')
                  + '.', '']
    if declaration is not None and document.get('declaration') != declaration:
        lines += ['**Measured with an older declaration** of the experiment or its contenders; '
                  'the commands below are those that ran.', '']
    if document.get('factors'):
        lines += [f'*Smaller than in the paper by:* {scaling.text(document["factors"])}.', '']
    if document.get('templates'):
        count = document['templates']
        lines += [f'The pairs start from {count} loaded {"databases" if count > 1 else "database"} '
                  + ('that all contenders share' if document.get('loaded_by')
                     else 'of each contender') + (' in turn.' if 1 < count < pairs else '.'), '']
    lines += [text + '\n' for text in (probe_line(document), disturbance_line(document)) if text]
    if document.get('disturbed_runs_allowed'):
        lines += ['**Measured with --force:** the machine may have been busy.', '']
    for item in definition.comparisons:
        lines += [comparison(definition, item, document), '']
    for name in plots:
        lines += [f'![{definition.title}]({prefix}{name})', '']
    for name, reason in document['skipped'].items():
        lines += [f'Not available yet: `{name}` ({reason}).', '']
    failures = [run for run in document['runs'] if run['error']]
    if failures:
        lines += ['Failed runs:', '']
        for run in failures:
            where = f', {run["point"]}' if run['point'] else ''
            text = run['error'].strip().replace('\n', '\n    ')
            lines += [f'* pair {run["pair"] + 1}, {run["contender"]}{where}:', '',
                      f'      {text}', '']
    lines += ['<details><summary>Commands (with other seeds for each pair, point and phase; '
              'results.json has them)</summary>', '', '```']
    lines += command_lines(document)
    lines += ['```', '', '</details>']
    return '\n'.join(lines)


def page(definition: Experiment, document: Document, plots: List[str]) -> str:
    return (experiment(definition, document, plots)
            + f'\n\n{environment_line(document)}. {document["started"]}.\n')
