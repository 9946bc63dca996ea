import typing

from .api import Session as Session
from .api import accelerate as accelerate
from .api import calibrate as calibrate
from .api import cg as cg
from .api import cluster as cluster
from .api import compile as compile
from .api import distribute as distribute
from .api import evaluate as evaluate
from .api import measure as measure
from .api import pagerank as pagerank
from .api import partition as partition
from .api import plan as plan
from .api import predict as predict
from .api import profile as profile
from .api import session as session
from .api import structure as structure
from .api import watch as watch
from .api import where as where
from .features.structure import Structure as Structure
from .machines.profile import Profile as Profile
from .matrices.gallery import gallery as gallery
from .matrices.partitioning.distribution import Distribution as Distribution
from .matrices.partitioning.partition import Partition as Partition
from .matrices.reading import load as load
from .operators.block_operator import Operator as Operator
from .records import Candidate as Candidate
from .records import Forecast as Forecast
from .records import Record as Record
from .results.plan import Plan as Plan
from .results.prediction import Prediction as Prediction

__version__: str
__all__: list[str]

def __getattr__(name: str) -> typing.Any: ...  # what papers offer
