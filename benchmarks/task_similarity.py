"""How well each similarity finds tasks of the same kind: the pool of the sites, nearest neighbours counted.

    python -m benchmarks.task_similarity

The first pool instance of every training template stands for a failure, the rest of the pool is searched. Counted are
the five nearest tasks: those of the same template and, with that template taken away, those of the same site.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import numpy as np

from models.embedded import embedded_dir
from training.loop.curriculum import Candidate, Similarity, TfIdf, build_pool, training_seeds
from training.loop.curriculum.embedding import Embedding
from training.loop.curriculum.pool import task_text
from training.loop.curriculum.similarity import Scores

NEAREST = 5


def shares(scores: Scores, failed: list[Candidate], pool: list[Candidate]) -> tuple[float, float]:
    same_template = np.array([[other.ref.name == one.ref.name for other in pool] for one in failed])
    same_site = np.array([[other.category == one.category for other in pool] for one in failed])
    nearest = np.argsort(-scores, axis=1, kind="stable")[:, :NEAREST]
    others = np.argsort(-np.where(same_template, -np.inf, scores), axis=1, kind="stable")[:, :NEAREST]
    in_template = np.take_along_axis(same_template, nearest, axis=1).mean()
    return float(in_template), float(np.take_along_axis(same_site, others, axis=1).mean())


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, default=embedded_dir(), help="the policy that embeds")
    checkpoint = parser.parse_args().checkpoint
    everything = await build_pool("sites", names=None, seeds=training_seeds("sites"), size=1_500)
    first = {one.ref.name: one for one in reversed(everything)}
    failed, pool = list(first.values()), [one for one in everything if one is not first[one.ref.name]]
    similarities: dict[str, Similarity] = {"TF-IDF": TfIdf(), "embedding": Embedding(checkpoint)}
    print(f"{len(failed)} failures, {len(pool)} pool tasks\n")
    print("| similarity | compared | same template | same site, template left out |\n|---|---|---|---|")
    for name, similarity in similarities.items():
        for compared, named in (("instruction", False), ("name and instruction", True)):
            asked, offered = (
                [task_text(one.ref, one.instruction) if named else one.instruction for one in side]
                for side in (failed, pool)
            )
            template, site = shares(similarity.scores(asked, offered), failed, pool)
            print(f"| {name} | {compared} | {template:.2f} | {site:.2f} |")


if __name__ == "__main__":
    asyncio.run(main())
